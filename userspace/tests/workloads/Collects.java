// SPDX-License-Identifier: GPL-2.0
/*
 * Collects.java: holds small objects that it never looks at again, and has the heap collected, again and again: the
 * collector looks at all of them.
 *
 * usage: Collects MIB ROUNDS
 */
public class Collects {
	private static final int NODE = 48; /* bytes of one, with its header and its share of the array */

	private static final class Node {
		private final long number, twice, square;
		private final Node before;

		private Node(long number, Node before) {
			this.number = number;
			this.twice = 2 * number;
			this.square = number * number;
			this.before = before;
		}
	}

	private static Node[] held;

	private static void fill(int mib) {
		held = new Node[(int)(((long)mib << 20) / NODE)];
		for (int i = 0; i < held.length; i++)
			held[i] = new Node(i, i > 0 ? held[i / 2] : null);
	}

	public static void main(String[] args) {
		int rounds = Integer.parseInt(args[1]);

		fill(Integer.parseInt(args[0]));
		for (int i = 0; i < rounds; i++)
			System.gc();
		System.out.println("{\"rounds\": " + rounds + ", \"held\": " + held.length + "}");
	}
}
