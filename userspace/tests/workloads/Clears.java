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
	private static volatile boolean over;

	private static void answer(int bytes) {
		byte[] block = new byte[bytes]; // site: answer
		kept = block;
		sum += block[bytes / 2] + block.length;
	}

	private static void awaitLine() {
		try {
			System.in.read();
		} catch (java.io.IOException e) {
			System.err.println(e);
		}
		over = true;
	}

	private static void say(long rounds) {
		System.out.println("{\"pid\": " + ProcessHandle.current().pid() + ", \"rounds\": " + rounds
				+ ", \"bytes\": " + sum + "}");
		System.out.flush();
	}

	public static void main(String[] args) {
		int bytes = Integer.parseInt(args[0]);
		long rounds = 0, next = System.nanoTime();

		new Thread(Clears::awaitLine).start();
		while (!over) {
			for (int i = 0; i < 10007 && !over; i++, rounds++)
				answer(bytes);
			if (System.nanoTime() - next < 0)
				continue;
			say(rounds);
			next = System.nanoTime() + 200_000_000;
		}
		say(rounds);
	}
}
