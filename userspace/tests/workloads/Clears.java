// SPDX-License-Identifier: GPL-2.0
/*
 * Clears.java: makes byte arrays, which Java clears, in answer(), until a line comes; says how many by then,
 * five times a second.
 *
 * usage: Clears BYTES
 */
public class Clears {
	private static byte[] kept;
	private static long sum;

	private static void answer(int bytes) {
		byte[] block = new byte[bytes]; // site: answer
		kept = block;
		sum += block[bytes / 2] + block.length;
	}

	private static void say(long rounds) {
		UntilLine.say("\"rounds\": " + rounds + ", \"bytes\": " + sum);
	}

	public static void main(String[] args) {
		int bytes = Integer.parseInt(args[0]);
		long rounds = 0;

		UntilLine.begin();
		while (!UntilLine.over) {
			for (int i = 0; i < 10007 && !UntilLine.over; i++, rounds++)
				answer(bytes);
			if (UntilLine.isDue())
				say(rounds);
		}
		say(rounds);
	}
}
