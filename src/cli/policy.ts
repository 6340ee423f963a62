import { existsSync, readFileSync } from 'node:fs';
import { Command } from 'commander';
import {
  ConfigError,
  type DatabaseConfig,
  readDatabaseConfig,
  readOperatorSecret,
} from '../config/config.ts';
import type { lintPolicyAt, PolicyLint, Replay, ReplayTarget } from '../tools/client/replay.ts';
import { findRunningSandbox } from '../tools/client/running-sandboxes.ts';
import { locateSandbox } from '../tools/client/sandbox-address.ts';
import type { SandboxAggregation } from '../tools/client/world.ts';
import { addSandboxListOptions, printSandboxList, type SandboxClientFlags } from './sandbox-options.ts';
import { cellOption, dataOption } from './setting-options.ts';
import type { Column } from './shell/terminal.ts';

interface TargetFlags {
  url?: string;
  readyFile?: string;
  adminUrl?: string;
  data?: string;
  cell?: string;
}

interface ReplayFlags extends TargetFlags {
  draft: string;
  wallet: string;
  since?: string;
  app?: string;
  json?: boolean;
}

const examples = `
Uses a running sandbox (--url or --ready-file), the admin port of a running
server (--admin-url, as the operator whose secret is in CUSTOS_OPERATOR_SECRET),
or the database directly: a sandbox's data folder with --data, or the one in
DATABASE_URL. Without all of them, the running sandbox.

The draft is the body of createPolicy; version and name are optional. It is
evaluated for every recorded request of the wallet, as of the time of the
request, in place of the wallet's policies. Requests are stored for 30 days.

Examples:
  $ custos policy replay --draft policy.json --wallet ext_wal_alice
  $ custos policy replay --draft policy.json --wallet ext_wal_alice \\
      --admin-url http://127.0.0.1:9464
  $ custos policy replay --draft policy.json --wallet ext_wal_alice \\
      --since 2026-01-01 --json

Exit codes: 0 success, 1 failure, 2 invalid usage.`;

/** Returns the command `custos policy …`, which tests policies before they take effect, and shows running sums. */
export function policyCommand(): Command {
  const policy = new Command('policy').description(
    'test policies before they take effect, and show running sums',
  );
  policy.addCommand(
    new Command('replay')
      .description(
        "evaluate a wallet's recorded requests under a draft policy and list the decisions that change",
      )
      .requiredOption('--draft <file>', 'the policy as JSON')
      .requiredOption('--wallet <id>', 'the wallet')
      .option('--since <time>', 'evaluate requests from this time on, ISO 8601')
      .option('--app <id>', 'the app of the wallet; needed when --wallet is an external id of several apps')
      .option('--url <url>', 'use the sandbox at this address')
      .option('--ready-file <path>', 'use the sandbox that wrote this file')
      .option('--admin-url <url>', 'use the admin port of a server')
      .addOption(dataOption())
      .addOption(cellOption())
      .option('--json', 'print JSON')
      .addHelpText('after', examples)
      .action(async (flags: ReplayFlags) => {
        const input = readInput(flags);
        const target = readTarget(flags);
        const replay = await replayAt(target, input);
        console.log(flags.json === true ? JSON.stringify(replay) : textOf(replay));
      }),
  );
  policy.addCommand(
    new Command('lint')
      .description('find requests that pass a policy although it denies what they do')
      .argument('<file or id>', 'the policy as JSON, or the id of a stored one')
      .option('--wallet <id>', 'the wallet that the requests are from')
      .option('--strict', 'evaluate as with the app setting strict_methods')
      .option('--app <id>', 'the app of the policy; needed for a file when there are several apps')
      .option('--url <url>', 'use the sandbox at this address')
      .option('--ready-file <path>', 'use the sandbox that wrote this file')
      .option('--admin-url <url>', 'use the admin port of a server')
      .addOption(dataOption())
      .addOption(cellOption())
      .option('--json', 'print JSON')
      .addHelpText('after', lintExamples)
      .action(async (named: string, flags: LintFlags) => {
        const isId = /^[a-z0-9]{24}$/.test(named) && !existsSync(named);
        const given = isId ? { policy_id: named } : { policy: readDraft(named, 'policy') };
        const strict = flags.strict === true ? { strict_methods: true } : {};
        const more = { ...strict, app_id: flags.app, wallet_id: flags.wallet };
        const lint = await lintAt(readTarget(flags), { ...given, ...more });
        console.log(flags.json === true ? JSON.stringify(lint) : gapsText(lint));
        if (lint.gaps.length > 0) process.exitCode = 1;
      }),
  );
  policy.addCommand(sumsCommand());
  return policy;
}

const sumsExamples = `
A policy limits a sum by a condition whose field is \`aggregation.<id>\`. The
sums are those of the window that ends now, by the clock of the sandbox.

Examples:
  $ custos policy sums
  $ custos policy sums --watch
  $ custos policy sums --json`;

const sumColumns: readonly Column<SandboxAggregation>[] = [
  { title: 'id', text: ({ id }) => id },
  { title: 'name', text: ({ name }) => name, canBeCut: true },
  {
    title: 'window',
    text: ({ window_seconds: seconds }) => `${Math.round(seconds / SECONDS_PER_HOUR)} h`,
    isNumber: true,
  },
  {
    title: 'sums',
    text: ({ sums }) => sums.map(({ wallet, sum }) => `${wallet.name ?? wallet.id} ${sum}`).join(', '),
    canBeCut: true,
  },
  {
    title: 'limits',
    text: ({ limits }) =>
      limits
        .map(({ policy, operator, values }) => `${policy.name} ${operator} ${values.join(' ')}`)
        .join(', '),
    canBeCut: true,
  },
];

const SECONDS_PER_HOUR = 3600;

function sumsCommand(): Command {
  return addSandboxListOptions(
    new Command('sums').description('print the aggregations of a running sandbox, with sums and limits'),
  )
    .addHelpText('after', sumsExamples)
    .action(async (flags: SandboxClientFlags) => {
      const { listAggregations } = await import('../tools/client/world.ts');
      await printSandboxList(flags, listAggregations, {
        columns: sumColumns,
        empty: 'there are no aggregations; `custos call createAggregation --help` shows how to create one',
      });
    });
}

interface LintFlags extends TargetFlags {
  wallet?: string;
  strict?: boolean;
  app?: string;
  json?: boolean;
}

const lintExamples = `
What one rule denies can often be had in another way: a transaction that is
denied can be signed by its hash, tokens can be moved by another function or
instruction, and an exported key signs everything. Each gap is printed with a
request that the policy denies, one that it allows, and what closes the gap.
Servers and databases as in \`custos policy replay\`.

Examples:
  $ custos policy lint policy.json
  $ custos policy lint n9q2m4x7c0v5b8k1z3w6y0ta --strict \\
      --admin-url http://127.0.0.1:9464

Exit codes: 0 no gap, 1 gaps or failure, 2 invalid usage.`;

async function lintAt(target: Target, input: Parameters<typeof lintPolicyAt>[1]): Promise<PolicyLint> {
  if (target.kind === 'database') {
    const { lintInDatabase } = await import('../admin/policy-analysis.ts');
    return lintInDatabase(target.config, input);
  }
  const client = await import('../tools/client/replay.ts');
  return client.lintPolicyAt(target, input);
}

function gapsText({ gaps, policy_id: id }: PolicyLint): string {
  if (gaps.length === 0) return `no gap found in ${id}`;
  return gaps
    .map(({ kind, message, denied, passes, rule_name: rule, remedy }) =>
      [
        `${kind}: ${message}`,
        ...(denied === null ? [] : [`  denied   ${denied.operation} ${JSON.stringify(denied.request)}`]),
        `  allowed  ${passes.operation} ${JSON.stringify(passes.request)}`,
        `  by rule  ${rule}`,
        ...(remedy === null ? [] : [`  remedy   ${remedyText(remedy)}`]),
      ].join('\n'),
    )
    .join('\n\n');
}

function remedyText(remedy: NonNullable<PolicyLint['gaps'][number]['remedy']>): string {
  if ('setting' in remedy) return `the app setting ${remedy.setting}`;
  return `the rule ${JSON.stringify(remedy.rule)}`;
}

/** A running server, or a database that is read directly. */
type Target = ReplayTarget | { readonly kind: 'database'; readonly config: DatabaseConfig };

async function replayAt(target: Target, input: ReturnType<typeof readInput>): Promise<Replay> {
  if (target.kind === 'database') {
    const { replayInDatabase } = await import('../admin/policy-analysis.ts');
    return replayInDatabase(target.config, input);
  }
  const { replayPolicies } = await import('../tools/client/replay.ts');
  return replayPolicies(target, input);
}

function invalidOption(fault: string): ConfigError {
  return new ConfigError('invalid option:', [fault]);
}

function readInput({ draft, wallet, since, app }: ReplayFlags) {
  const sinceMs = since === undefined ? undefined : Date.parse(since);
  if (Number.isNaN(sinceMs) || (sinceMs !== undefined && sinceMs < 0)) {
    throw invalidOption(`--since: expected a time such as \`2026-01-01T00:00:00Z\`, got \`${since}\``);
  }
  return { wallet_id: wallet, draft: readDraft(draft), since_ms: sinceMs, app_id: app };
}

function readDraft(file: string, given = '--draft'): { chain_type: never; rules: never[] } {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw invalidOption(`${given}: expected a JSON file, got \`${file}\`: ${(error as Error).message}`);
  }
  const isPolicy =
    typeof parsed === 'object' &&
    parsed !== null &&
    typeof (parsed as { chain_type?: unknown }).chain_type === 'string' &&
    Array.isArray((parsed as { rules?: unknown }).rules);
  if (!isPolicy) throw invalidOption(`${given}: expected an object with chain_type and rules in \`${file}\``);
  return parsed as { chain_type: never; rules: never[] };
}

function readTarget({ url, readyFile, adminUrl, data }: TargetFlags): Target {
  const given = [url, readyFile, adminUrl, data].filter((flag) => flag !== undefined);
  if (given.length > 1) {
    throw invalidOption('expected only one of --url, --ready-file, --admin-url and --data');
  }
  if (url !== undefined) {
    if (!URL.canParse(url) || !/^https?:/.test(url))
      throw invalidOption(`--url: expected an http(s) URL, got \`${url}\``);
    return { kind: 'sandbox', ...locateSandbox({ url }) };
  }
  if (readyFile !== undefined) return { kind: 'ready_file', file: readyFile };
  if (adminUrl === undefined) return data === undefined ? defaultTarget() : databaseAt({ data });
  if (!URL.canParse(adminUrl) || !/^https?:/.test(adminUrl))
    throw invalidOption(`--admin-url: expected an http(s) URL, got \`${adminUrl}\``);
  return { kind: 'url', url: adminUrl, operatorSecret: readOperatorSecret() };
}

function databaseAt(flags: { data?: string }): Target {
  return { kind: 'database', config: readDatabaseConfig(flags) };
}

/**
 * Returns the default target: the database in DATABASE_URL or, without that variable, the running sandbox, as in
 * other commands.
 */
function defaultTarget(): Target {
  try {
    return databaseAt({});
  } catch (error) {
    const isUnset =
      error instanceof ConfigError && error.faults.some((fault) => fault.includes('is missing'));
    const running = isUnset ? findRunningSandbox(undefined) : undefined;
    if (running === undefined) throw error;
    return { kind: 'sandbox', url: running.base_url, caFile: running.ca_file };
  }
}

function textOf({ judged, changed, newly_allowed, newly_denied, skipped, changes }: Replay): string {
  const summary = `${counted(judged, 'request')} evaluated, ${counted(changed, 'decision')} would change: ${newly_allowed} newly allowed, ${newly_denied} newly denied`;
  const missing =
    skipped === 0
      ? []
      : [
          `${counted(skipped, 'request')} skipped: too large to be stored, or in a format that is no longer supported`,
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
    ...aligned([['time', 'method', 'decision', 'rule', 'request'], ...rows]),
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
