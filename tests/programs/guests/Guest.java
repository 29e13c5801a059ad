import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.stream.IntStream;

/** The JVM and pages that are taken away: it uses SIGSEGV for null checks, for safepoints, and for stacks that overflow. Loads and stores on
 *  memory that a copy still writes come from interpreted and from compiled code, of several threads. Prints the same with and without. */
public class Guest {
    static native ByteBuffer open();
    static native void start();
    static native void finish();
    static native long fromC();

    static class Node { int value; Node next; }
    static int depth;

    static long sum(ByteBuffer bytes, int from, int to) {
        long total = 0;
        for (int i = from; i < to; i++) total += bytes.get(i);
        return total;
    }

    /** Compiled code has no branch for null here: it faults. */
    static int value(Node node) { return node.value + 1; }

    static int nulls(int rounds) {
        int caught = 0;
        Node node = new Node();
        for (int i = 0; i < rounds; i++) {
            try { caught -= value(i % 997 == 0 ? null : node) - 1; } catch (NullPointerException e) { caught++; }
        }
        return caught;
    }

    static int overflow() { depth++; return overflow() + 1; }

    public static void main(String[] args) throws Exception {
        System.load(args[0]);
        ByteBuffer landing = open();
        int bytes = landing.capacity();
        start();
        System.out.println("interpreted: " + sum(landing, 0, bytes));
        finish();
        System.out.println("nulls: " + nulls(400_000));
        for (int round = 0; round < 300; round++) {
            start();
            if (sum(landing, 0, bytes) != 7L * bytes) System.out.println("wrong sum");
            landing.put(round * 131 % bytes, (byte) 7);
            finish();
        }
        System.out.println("compiled: " + sum(landing, 0, bytes));
        start();
        System.out.println("nulls meanwhile: " + nulls(200_000));
        finish();
        start();
        try { overflow(); } catch (StackOverflowError e) { System.out.println("an overflow: " + (depth > 1000)); }
        finish();
        // Compiled loops poll a page that the collector takes away.
        Thread garbage = new Thread(() -> {
            while (!Thread.interrupted()) { byte[] b = new byte[1 << 18]; b[5] = 1; System.gc(); }
        });
        garbage.start();
        long[] sums = new long[8];
        for (int round = 0; round < 20; round++) {
            start();
            Thread[] threads = IntStream.range(0, sums.length).mapToObj(i -> new Thread(() -> {
                sums[i] = sum(landing, i * bytes / 8, (i + 1) * bytes / 8);
                if (nulls(2000) <= 0) sums[i] = -1;
            })).toArray(Thread[]::new);
            for (Thread thread : threads) thread.start();
            for (Thread thread : threads) thread.join();
            finish();
        }
        garbage.interrupt();
        garbage.join();
        System.out.println("threads: " + Arrays.toString(sums));
        start();
        System.out.println("from C: " + fromC());
        finish();
        if (args.length > 1) {
            start();
            fromNowhere();
        }
    }

    static native void fromNowhere();
}
