// SPDX-License-Identifier: GPL-2.0
/*
 * Keeps.java: one byte array, made once and worked on until a line comes; says how many rounds by then, five
 * times a second.
 *
 * usage: Keeps BYTES
 */
public class Keeps {
	private static int work(byte[] block, int round) {
		int sum = 0;

		for (int i = 0; i < block.length; i++) {
			block[i] += (byte)(i * round);
			sum = 31 * sum + block[i];
		}
		return sum;
	}

	private static void say(long rounds, long sum) {
		UntilLine.say("\"rounds\": " + rounds + ", \"sum\": " + sum);
	}

	public static void main(String[] args) {
		byte[] block = new byte[Integer.parseInt(args[0])];
		long rounds = 0, sum = 0;

		UntilLine.begin();
		while (!UntilLine.over) {
			sum += work(block, (int)rounds++);
			if (UntilLine.isDue())
				say(rounds, sum);
		}
		say(rounds, sum);
	}
}
