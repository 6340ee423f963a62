import { type Command, Option } from 'commander';

/** The common options of `custos sandbox` and `custos mock`. `readSandboxConfig` validates the values. */
export function addListenOptions(command: Command): Command {
  return command
    .addOption(text('--host <address>', 'address to listen on').default('127.0.0.1'))
    .addOption(text('--port <number>', 'port to listen on; 0 selects a free one').default('4010'))
    .addOption(text('--data <folder>', 'store all data in this folder').default(undefined, 'in memory'))
    .addOption(
      text('--prefix <word>', 'the word that clients use for `service` in header names and ids').default(
        'service',
      ),
    )
    .addOption(text('--app-id <id>', 'id of the app').default(undefined, 'a fixed id'))
    .addOption(text('--app-secret <secret>', 'secret of the app').default(undefined, 'a fixed secret'))
    .addOption(
      text('--jwt-key <file>', "PEM of the key that signs your users' tokens, which are then accepted"),
    )
    .addOption(
      text('--public-url <url>', 'base URL under which clients sign their requests; repeatable').argParser(
        collect,
      ),
    )
    .addOption(text('--plain-http', 'also accept plain HTTP from the local machine'))
    .addOption(
      text('--rate-limit <n[/burst]>', 'requests per second for each app').default(undefined, 'no limit'),
    )
    .addOption(text('--admin-port <number>', 'also serve /metrics, /healthz and /readyz on this port'))
    .addOption(
      text(
        '--ready-file <path>',
        'write {base_url, app_id, app_secret, ca_file, pid} to this file once the server is ready',
      ),
    )
    .addOption(text('--quiet', 'print only errors'))
    .addOption(text('--json', 'print one JSON object per line'))
    .addOption(text('--log-level <level>', 'debug, info, warn, error or silent').default('info'));
}

function text(flags: string, description: string): Option {
  return new Option(flags, description);
}

/** Collects the values of a repeatable option. */
export function collect(value: string, values: string[] = []): string[] {
  return [...values, value];
}
