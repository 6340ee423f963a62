import { type Command, Option } from 'commander';

/** The options that `custos sandbox` and `custos mock` share. Values are checked by `readSandboxConfig`. */
export function addListenOptions(command: Command): Command {
  return command
    .addOption(text('--host <address>', 'address to listen on').default('127.0.0.1'))
    .addOption(text('--port <number>', 'port to listen on; 0 takes any free one').default('4010'))
    .addOption(text('--data <folder>', 'keep everything in this folder').default(undefined, 'in memory'))
    .addOption(
      text('--prefix <word>', "the clients' own word for `service` in header names and ids").default(
        'service',
      ),
    )
    .addOption(text('--app-id <id>', 'id of the app').default(undefined, 'a fixed one'))
    .addOption(text('--app-secret <secret>', 'secret of the app').default(undefined, 'a fixed one'))
    .addOption(text('--jwt-key <file>', "PEM of the key that signs your users' tokens; they are trusted"))
    .addOption(
      text('--public-url <url>', 'base URL under which clients sign their requests; repeatable').argParser(
        collect,
      ),
    )
    .addOption(text('--plain-http', 'also accept plain HTTP from this machine'))
    .addOption(
      text('--rate-limit <n[/burst]>', 'requests per second for each app').default(undefined, 'no limit'),
    )
    .addOption(text('--admin-port <number>', 'serve /metrics, /healthz and /readyz on this port too'))
    .addOption(
      text(
        '--ready-file <path>',
        'write {base_url, app_id, app_secret, ca_file, pid} here once requests are served',
      ),
    )
    .addOption(text('--quiet', 'print nothing but failures'))
    .addOption(text('--json', 'print one JSON object a line'))
    .addOption(text('--log-level <level>', 'debug, info, warn, error or silent').default('info'));
}

function text(flags: string, description: string): Option {
  return new Option(flags, description);
}

/** Gathers the values of an option that may be given several times. */
export function collect(value: string, values: string[] = []): string[] {
  return [...values, value];
}
