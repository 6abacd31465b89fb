import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import software.amazon.event.ruler.Machine;

/**
 * AWS's own pattern engine, as a peer of ours. Answers each line on the standard input with microseconds a
 * document, and how many rules matched.
 */
public final class Peer {
    private record Contest(Machine machine, List<String> documents) {
        static Contest read(Path inputs, String count) throws Exception {
            Machine machine = new Machine();
            int number = 0;
            for (String rule : Files.readAllLines(inputs.resolve("patterns-" + count + ".jsonl"))) {
                machine.addRule("rule-" + number++, rule);
            }
            return new Contest(machine, Files.readAllLines(inputs.resolve("changes-" + count + ".jsonl")));
        }
    }

    public static void main(String[] arguments) throws Exception {
        Path inputs = Path.of(arguments[0]);
        Map<String, Contest> contests = new HashMap<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (!words[0].equals("patterns")) {
                System.out.println("-");
                continue;
            }
            Contest contest = contests.get(words[1]);
            if (contest == null) {
                contest = Contest.read(inputs, words[1]);
                contests.put(words[1], contest);
            }
            long start = System.nanoTime();
            int matches = 0;
            for (String document : contest.documents()) {
                matches += contest.machine().rulesForJSONEvent(document).size();
            }
            double microseconds = (System.nanoTime() - start) / 1e3 / contest.documents().size();
            System.out.println(microseconds + " " + matches);
        }
    }
}
