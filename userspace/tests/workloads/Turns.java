// SPDX-License-Identifier: GPL-2.0
/*
 * Turns.java: makes byte arrays, which Java clears, in first(), from when a line comes on in second(), until another
 * one comes; says how many by then, five times a second.
 *
 * usage: Turns BYTES
 */
public class Turns {
	private static final int ROUNDS = 1009;
	private static byte[] kept;
	private static long sum, rounds;

	private static void first(int bytes) {
		for (int i = 0; i < ROUNDS; i++) {
			kept = new byte[bytes];
			sum += kept[bytes / 2];
		}
	}

	private static void second(int bytes) {
		for (int i = 0; i < ROUNDS; i++) {
			kept = new byte[bytes];
			sum += kept[bytes / 3];
		}
	}

	private static void say() {
		UntilLine.say("\"rounds\": " + rounds + ", \"sum\": " + sum);
	}

	private static void untilLine(int bytes, boolean turned) {
		UntilLine.begin();
		while (!UntilLine.over) {
			if (turned)
				second(bytes);
			else
				first(bytes);
			rounds += ROUNDS;
			if (UntilLine.isDue())
				say();
		}
		say();
	}

	public static void main(String[] args) {
		int bytes = Integer.parseInt(args[0]);

		untilLine(bytes, false);
		UntilLine.over = false;
		untilLine(bytes, true);
	}
}
