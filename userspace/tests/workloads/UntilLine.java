// SPDX-License-Identifier: GPL-2.0
/* UntilLine.java: of programs that run until a line comes, and say how far they are five times a second. */
final class UntilLine {
	private static final long PAUSE_NS = 200_000_000;

	static volatile boolean over;
	private static long next;

	private UntilLine() {
	}

	private static void awaitLine() {
		try {
			System.in.read();
		} catch (java.io.IOException e) {
			System.err.println(e);
		}
		over = true;
	}

	static void begin() {
		next = System.nanoTime();
		new Thread(UntilLine::awaitLine).start();
	}

	/* fields: of a JSON object, beside the process's number. */
	static void say(String fields) {
		System.out.println("{\"pid\": " + ProcessHandle.current().pid() + ", " + fields + "}");
		System.out.flush();
		next = System.nanoTime() + PAUSE_NS;
	}

	static boolean isDue() {
		return System.nanoTime() - next >= 0;
	}
}
