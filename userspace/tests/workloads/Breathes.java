// SPDX-License-Identifier: GPL-2.0
/*
 * Breathes.java: fills the heap, drops all of it, and has it collected, again and again: the JVM gives what it
 * has above its least size back to the kernel each time.
 *
 * usage: Breathes ROUNDS MIB
 */
import java.nio.file.Files;
import java.nio.file.Path;

public class Breathes {
	private static final long MIB = 1 << 20, PAGE = 4096, BESIDE = 96 * MIB;

	private static byte[][] kept;

	private static void fill(int mib) {
		kept = new byte[mib * 4][];
		for (int i = 0; i < kept.length; i++)
			kept[i] = new byte[256 << 10];
	}

	private static long resident() throws java.io.IOException {
		return Long.parseLong(Files.readString(Path.of("/proc/self/statm")).split(" ")[1]) * PAGE;
	}

	/* The collector gives it back beside the program, and some time later. */
	private static void awaitGivenBack() throws Exception {
		while (resident() > Runtime.getRuntime().totalMemory() + BESIDE)
			Thread.sleep(1);
	}

	public static void main(String[] args) throws Exception {
		int rounds = Integer.parseInt(args[0]);

		for (int i = 0; i < rounds; i++) {
			fill(Integer.parseInt(args[1]));
			kept = null;
			System.gc();
			awaitGivenBack();
		}
		System.out.println("{\"rounds\": " + rounds + "}");
	}
}
