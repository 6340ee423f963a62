import { type Finding, fault, ok, warning } from '../../reports/finding.ts';
import type { RunningSandboxFile } from '../running-sandboxes.ts';
import { SandboxUnavailableError } from '../sandbox-address.ts';
import { openSandboxClient } from '../sandbox-client.ts';

const TIMEOUT_MS = 3_000;

/** Whether each running sandbox responds, in which version, and whether its clock stands still. */
export async function checkSandboxes(
  running: readonly RunningSandboxFile[],
  version: string,
): Promise<Finding[]> {
  if (running.length === 0) return [ok('sandbox', 'none is running; start one with `custos sandbox`')];
  const findings = await Promise.all(running.map((each) => checkSandbox(each, version)));
  return findings.flat();
}

async function checkSandbox(
  { base_url: url, ca_file: caFile, version: its, pid, data }: RunningSandboxFile,
  version: string,
): Promise<Finding[]> {
  const client = openSandboxClient({ url, caFile });
  try {
    const clock = await client.call<{ now: string; frozen: boolean }>('GET', '/clock', {
      timeoutMs: TIMEOUT_MS,
    });
    const where = `${url} (process ${pid}, ${data === null ? 'in memory' : `data in \`${data}\``})`;
    const sandbox =
      its === version
        ? ok('sandbox', `${where} is version ${its}`)
        : warning('sandbox', `${where} is version ${its}, this is ${version}`, 'stop it and start it again');
    return [sandbox, clockFinding(clock)];
  } catch (error) {
    const advice = `end process ${pid} and start the sandbox again`;
    const reason = error instanceof SandboxUnavailableError ? '' : `: ${(error as Error).message}`;
    return [fault('sandbox', `${url} does not respond${reason}`, advice)];
  } finally {
    client.close();
  }
}

function clockFinding({ now, frozen }: { readonly now: string; readonly frozen: boolean }): Finding {
  if (!frozen) return ok('clock', `${now}, running`);
  return warning('clock', `frozen at ${now}`, 'nothing becomes due until it moves: custos clock resume');
}
