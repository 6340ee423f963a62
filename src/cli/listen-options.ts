import type { Command } from 'commander';
import { collect } from './sandbox-options.ts';

/** What a command does by default where that differs from `custos sandbox`. */
export interface ListenDefaults {
  readonly port?: string;
  /** What --data stores. */
  readonly data?: string;
  /** Whether the command prints its own output only. */
  readonly quiet?: boolean;
}

/** The common options of the commands that serve on this machine. `readSandboxConfig` validates the values. */
export function addListenOptions(
  command: Command,
  { port = '4010', data = 'store all data in this folder (default: in memory)', quiet }: ListenDefaults = {},
): Command {
  const listening = command
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <number>', 'port to listen on; 0 selects a free one', port)
    .option('--data <folder>', data)
    .option('--prefix <word>', 'the word that clients use for `service` in header names and ids', 'service')
    .option('--public-url <url>', 'base URL under which clients sign their requests; repeatable', collect)
    .option('--plain-http', 'also accept plain HTTP from the local machine')
    .option('--rate-limit <n[/burst]>', 'requests per second for each app (default: no limit)')
    .option('--admin-port <number>', 'also serve /metrics, /healthz and /readyz on this port');
  if (quiet === true) return listening;
  return listening
    .option(
      '--ready-file <path>',
      'write {base_url, app_id, app_secret, ca_file, control_token, prefix, pid} to this file once the server is ready',
    )
    .option('--quiet', 'print only errors')
    .option('--json', 'print one JSON object per line')
    .option('--log-level <level>', 'debug, info, warn, error or silent', 'info');
}
