// SPDX-License-Identifier: GPL-2.0
/*
 * Clears.java: makes byte arrays, which Java clears, in answer(), until a line comes; says how many by then,
 * five times a second. direct: buffers outside of its heap, in answerDirectly(), which it clears as well.
 *
 * usage: Clears BYTES [direct]
 */
import java.nio.ByteBuffer;

public class Clears {
	private static byte[] kept;
	private static ByteBuffer keptBuffer;
	private static long sum;

	private static void answer(int bytes) {
		byte[] block = new byte[bytes]; // site: answer
		kept = block;
		sum += block[bytes / 2] + block.length;
	}

	private static void answerDirectly(int bytes) {
		ByteBuffer block = ByteBuffer.allocateDirect(bytes);
		keptBuffer = block;
		sum += block.get(bytes / 2) + block.capacity();
	}

	private static void say(long rounds) {
		UntilLine.say("\"rounds\": " + rounds + ", \"bytes\": " + sum);
	}

	public static void main(String[] args) {
		int bytes = Integer.parseInt(args[0]);
		boolean direct = args.length > 1;
		long rounds = 0;

		UntilLine.begin();
		while (!UntilLine.over) {
			for (int i = 0; i < 1009 && !UntilLine.over; i++, rounds++)
				if (direct)
					answerDirectly(bytes);
				else
					answer(bytes);
			if (UntilLine.isDue())
				say(rounds);
		}
		say(rounds);
	}
}
