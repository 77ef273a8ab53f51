// SPDX-License-Identifier: GPL-2.0
/*
 * Keeps.java: one byte array, made once and worked on until a line comes; says how many rounds by then, five
 * times a second.
 *
 * usage: Keeps BYTES
 */
public class Keeps {
	private static volatile boolean over;

	private static int work(byte[] block, int round) {
		int sum = 0;

		for (int i = 0; i < block.length; i++) {
			block[i] += (byte)(i * round);
			sum = 31 * sum + block[i];
		}
		return sum;
	}

	private static void awaitLine() {
		try {
			System.in.read();
		} catch (java.io.IOException e) {
			System.err.println(e);
		}
		over = true;
	}

	private static void say(long rounds, long sum) {
		System.out.println("{\"pid\": " + ProcessHandle.current().pid() + ", \"rounds\": " + rounds
				+ ", \"sum\": " + sum + "}");
		System.out.flush();
	}

	public static void main(String[] args) {
		byte[] block = new byte[Integer.parseInt(args[0])];
		long rounds = 0, sum = 0, next = System.nanoTime();

		new Thread(Keeps::awaitLine).start();
		while (!over) {
			sum += work(block, (int)rounds++);
			if (System.nanoTime() - next < 0)
				continue;
			say(rounds, sum);
			next = System.nanoTime() + 200_000_000;
		}
		say(rounds, sum);
	}
}
