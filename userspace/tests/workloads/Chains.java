// SPDX-License-Identifier: GPL-2.0
/*
 * Chains.java: allocates at known places once a line comes, and says what Java itself says of who called whom there,
 * and at which lines.
 *
 * usage: Chains
 */
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;

public class Chains {
	private static final int COUNT = 7, BLOCK = 1 << 20;
	private static final List<ByteBuffer> kept = new ArrayList<>();
	private static final List<String> said = new ArrayList<>();

	interface Shape {
		default void draw(int[][] points, String name) {
			allocate("default of an interface");
		}
	}

	static class Sized implements Shape {
		Sized() {
			allocate("constructor");
		}

		void größe() {
			allocate("not ASCII");
		}

		static <T extends Comparable<T>> T most(T one, T other) {
			allocate("of types");
			return one.compareTo(other) < 0 ? other : one;
		}
	}

	/* The same line for both: what is said is where it is done. */
	private static void allocate(String name) {
		for (int i = 0; i < COUNT; i++) { if (i == 0) say(name, new Throwable()); kept.add(ByteBuffer.allocateDirect(BLOCK)); }
	}

	private static void say(String name, Throwable here) {
		StringBuilder chain = new StringBuilder();

		for (StackTraceElement frame : here.getStackTrace()) {
			if (!frame.getClassName().startsWith("Chains"))
				continue;
			chain.append(chain.length() == 0 ? "" : ", ");
			chain.append("[\"" + frame.getClassName() + "." + frame.getMethodName() + "\", "
				+ frame.getLineNumber() + "]");
		}
		said.add("{\"case\": \"" + name + "\", \"count\": " + COUNT + ", \"bytes\": " + BLOCK + ", \"chain\": ["
			+ chain + "]}");
	}

	private static void nested(int level) {
		if (level > 0)
			nested(level - 1);
		else
			allocate("nested");
	}

	/* Deeper than frames of Java are named. */
	private static void deep(int level) {
		if (level > 0)
			deep(level - 1);
		else
			allocate("deep");
	}

	private static void through(IntConsumer consumer) {
		IntStream.range(0, 1).forEach(consumer);
	}

	/* Far from the line and from the byte before: its table has numbers of several bytes. */
	private static void far(int round) {
		double sum = round;

		sum += 1.1 * sum + 2.2 * sum + 3.3 * sum + 4.4 * sum + 5.5 * sum + 6.6 * sum + 7.7 * sum + 8.8 * sum;
		sum += 1.1 * sum + 2.2 * sum + 3.3 * sum + 4.4 * sum + 5.5 * sum + 6.6 * sum + 7.7 * sum + 8.8 * sum;
		if (sum < 0)
			return;
		/*
		 * Nothing
		 * is
		 * here
		 * for
		 * some
		 * lines.
		 */
		allocate("far");
	}

	private static void calls() {
		nested(5);
		deep(61);
		through(i -> allocate("lambda"));
		Sized sized = new Sized();
		sized.größe();
		sized.draw(null, "");
		Sized.most(1L, 2L);
		far(1);
	}

	public static void main(String[] words) throws java.io.IOException {
		System.out.println("{\"ready\": true}");
		System.in.read();
		calls();
		for (String line : said)
			System.out.println(line);
		System.out.println("{\"faults\": 0}");
		System.out.flush();
		System.in.read();
		System.in.read();
	}
}
