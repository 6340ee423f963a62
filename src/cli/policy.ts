import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import type { Replay, ReplayTarget } from '../client/replay.ts';
import { ConfigError, type DatabaseConfig, readDatabaseConfig } from '../config.ts';

interface ReplayFlags {
  draft: string;
  wallet: string;
  since?: string;
  app?: string;
  readyFile?: string;
  url?: string;
  data?: string;
  json?: boolean;
}

const examples = `
Works through a running sandbox (--ready-file), through the admin port of a running server (--url), or on the database
itself: that of DATABASE_URL, or a sandbox's folder with --data.

The draft is a policy as it is created; version and name may be left out. It judges every recorded request of the
wallet at its own time, in place of the policies that judged then. Requests are kept for 30 days.

Examples:
  $ custos policy replay --draft policy.json --wallet eh3eoohq3vfnaue6h6krsv31 --ready-file ready.json
  $ custos policy replay --draft policy.json --wallet eh3eoohq3vfnaue6h6krsv31 --url http://127.0.0.1:9464
  $ custos policy replay --draft policy.json --wallet eh3eoohq3vfnaue6h6krsv31 --since 2026-01-01 --json

Exit codes: 0 judged, whatever changes; 1 failed; 2 called wrongly.`;

/** `custos policy …`: what a policy would change. */
export function policyCommand(): Command {
  const policy = new Command('policy').description('try policies out before they are in force');
  policy.addCommand(
    new Command('replay')
      .description('judge the recorded requests of a wallet by a draft, and tell which decisions change')
      .requiredOption('--draft <file>', 'the policy as JSON')
      .requiredOption('--wallet <id>', 'the wallet')
      .option('--since <time>', 'judge requests from this instant on, ISO 8601')
      .option('--app <id>', 'the app of the wallet, where --wallet is an external id and there are several')
      .option('--ready-file <path>', 'ask the sandbox that wrote this file')
      .option('--url <url>', 'ask the server with its admin port here')
      .option('--data <folder>', "work on a sandbox's folder in place of DATABASE_URL")
      .option('--json', 'print JSON')
      .addHelpText('after', examples)
      .action(async (flags: ReplayFlags) => {
        const input = readInput(flags);
        const target = readTarget(flags);
        const replay = await replayAt(target, input);
        console.log(flags.json === true ? JSON.stringify(replay) : textOf(replay));
      }),
  );
  return policy;
}

/** The server, or the database itself. */
type Target = ReplayTarget | { readonly kind: 'database'; readonly config: DatabaseConfig };

async function replayAt(target: Target, input: ReturnType<typeof readInput>): Promise<Replay> {
  if (target.kind === 'database') {
    const { replayInDatabase } = await import('../admin/replay-policies.ts');
    return replayInDatabase(target.config, input);
  }
  const { replayPolicies } = await import('../client/replay.ts');
  return replayPolicies(target, input);
}

function unusable(fault: string): ConfigError {
  return new ConfigError('this option cannot be used:', [fault]);
}

function readInput({ draft, wallet, since, app }: ReplayFlags) {
  const sinceMs = since === undefined ? undefined : Date.parse(since);
  if (Number.isNaN(sinceMs) || (sinceMs !== undefined && sinceMs < 0)) {
    throw unusable(`--since must be a time such as \`2026-01-01T00:00:00Z\`, not \`${since}\``);
  }
  return { wallet_id: wallet, draft: readDraft(draft), since_ms: sinceMs, app_id: app };
}

function readDraft(file: string): { chain_type: never; rules: never[] } {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw unusable(`--draft \`${file}\` is not a JSON file: ${(error as Error).message}`);
  }
  const isPolicy =
    typeof parsed === 'object' &&
    parsed !== null &&
    typeof (parsed as { chain_type?: unknown }).chain_type === 'string' &&
    Array.isArray((parsed as { rules?: unknown }).rules);
  if (!isPolicy)
    throw unusable(`--draft \`${file}\` must hold a policy: an object with chain_type and rules`);
  return parsed as { chain_type: never; rules: never[] };
}

function readTarget({ readyFile, url, data }: ReplayFlags): Target {
  const given = [readyFile, url, data].filter((flag) => flag !== undefined);
  if (given.length > 1) throw unusable('--ready-file, --url and --data exclude each other');
  if (readyFile !== undefined) return { kind: 'ready_file', file: readyFile };
  if (url === undefined) {
    return { kind: 'database', config: readDatabaseConfig(data === undefined ? {} : { data }) };
  }
  if (!URL.canParse(url) || !/^https?:/.test(url))
    throw unusable(`--url must be an http(s) URL, not \`${url}\``);
  return { kind: 'url', url };
}

function textOf({ judged, changed, newly_allowed, newly_denied, skipped, changes }: Replay): string {
  const summary = `${counted(judged, 'request')} judged again, ${counted(changed, 'decision')} would change: ${newly_allowed} newly allowed, ${newly_denied} newly denied`;
  const missing =
    skipped === 0
      ? []
      : [
          `${counted(skipped, 'request')} could not be judged again: too large to be kept, or of a form that is not judged any more`,
        ];
  if (changes.length === 0) return [summary, ...missing].join('\n');
  const rows = changes.map((change) => [
    new Date(change.judged_at_ms).toISOString(),
    change.method,
    `${change.was} -> ${change.would_be}`,
    change.rule_name ?? change.outcome,
    change.request_id,
  ]);
  const unlisted = changed - changes.length;
  return [
    summary,
    ...missing,
    '',
    ...aligned([['time', 'method', 'decision', 'because of', 'request'], ...rows]),
    ...(unlisted === 0 ? [] : [`and ${unlisted} more`]),
  ].join('\n');
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  );
}
