import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { asStarted } from '../../config/client.ts';
import type { AddSandboxFaultRequest, SandboxFault } from '../../tools/client/world.ts';
import {
  addSandboxClientOptions,
  addSandboxListOptions,
  collect,
  invalidOption,
  printSandboxList,
  type SandboxClientFlags,
  withSandbox,
} from '../sandbox-options.ts';
import type { Column } from '../shell/terminal.ts';
import { readDurationMs } from './clock.ts';

const examples = `
Examples:
  $ custos faults add error --code unavailable --operation walletRpc \\
      --probability 25%
  $ custos faults add cut_after_commit --operation transferFromWallet --count 1
  $ custos faults add latency --delay 200ms-2s
  $ custos faults add respond --operation createWallet --status 503 \\
      --header retry-after=7 --body '{"error":"closed"}'
  $ custos faults add transaction_revert --wallet ext_wal_alice --count 1
  $ custos faults add webhook_duplicate --event transaction.confirmed
  $ custos faults replay staging.har
  $ custos faults list
  $ custos faults clear`;

const addHelp = `
Effects on requests:
  latency            wait before the request is executed (--delay)
  error              refuse it with a documented error (--code)
  rate_limit         refuse it with 429 and Retry-After (--retry-after)
  respond            answer it with --status, --header and --body, without
                     executing it; the document must allow the response
  cut_before_commit  close the connection; nothing is stored
  cut_after_commit   execute it, and close the connection without response
  truncated_body     close the connection after half of the response
  slow_body          send the response slowly (--delay)

Effects on transactions of simulated chains, by --chain and --wallet:
  transaction_revert, transaction_drop
  transaction_delay           include it later (--delay)
  transaction_reorganization  abandon the block that includes it, --blocks later

Effects on deliveries to webhook endpoints, by --event, --app and --wallet:
  webhook_duplicate, webhook_bad_signature
  webhook_delay    deliver later (--delay)
  webhook_reorder  deliver later (--delay), after later events of the resource
${examples}`;

/** Returns the command `custos faults …`, which makes a running sandbox fail on purpose. */
export function faultsCommand(): Command {
  const faults = new Command('faults')
    .description('make requests, transactions and webhooks of a running sandbox fail on purpose')
    .addHelpText('after', examples);
  faults.addCommand(addCommand());
  faults.addCommand(replayCommand());
  faults.addCommand(listCommand());
  faults.addCommand(clearCommand());
  return faults;
}

interface AddFlags extends SandboxClientFlags {
  operation?: string;
  app?: string;
  wallet?: string;
  probability?: string;
  count?: string;
  code?: string;
  status?: string;
  header?: string[];
  body?: string;
  undocumented?: true;
  delay?: string;
  retryAfter?: string;
  chain?: string;
  event?: string;
  blocks?: string;
}

function addCommand(): Command {
  return addSandboxClientOptions(
    new Command('add')
      .description(
        'add a rule; it applies until it is removed, its --count is reached, or the sandbox is reset',
      )
      .argument('<effect>', 'what happens; see below')
      .option('--operation <id>', 'only requests of this operation')
      .option('--app <id>', 'only requests or events of this app')
      .option('--wallet <id>', 'only requests, transactions or events of this wallet')
      .option('--chain <chain>', 'only transactions on this chain, such as base')
      .option('--event <type>', 'only events of this type')
      .option('--probability <share>', 'how often: 0.25 or 25% (default: always)')
      .option('--count <number>', 'how many times at most (default: no limit)')
      .option('--code <code>', 'the error code of error')
      .option('--status <number>', 'the status of respond (default: 200)')
      .option('--header <name=value>', 'a header of respond; repeatable', collect)
      .option('--body <json|file>', 'the body of respond: JSON, or a file with JSON or text')
      .option('--undocumented', 'also an error or a response that the document does not allow')
      .option('--delay <duration>', 'how long: 500ms, 2s, or a range such as 200ms-2s')
      .option('--blocks <number>', 'how many blocks later a block is abandoned (default: 2)')
      .option('--retry-after <duration>', 'the Retry-After of rate_limit (default: 1s)'),
  )
    .addHelpText('after', addHelp)
    .action((effect: string, flags: AddFlags) => {
      const body = ruleOf(effect, flags);
      return withSandbox(flags, async (client) => {
        const { addFault } = await import('../../tools/client/world.ts');
        printFault(await addFault(client, body), flags);
      });
    });
}

function listCommand(): Command {
  return addSandboxListOptions(
    new Command('list').description('print the rules and how many times each has applied'),
  )
    .addHelpText('after', examples)
    .action(async (flags: SandboxClientFlags) => {
      const { listFaults } = await import('../../tools/client/world.ts');
      await printSandboxList(flags, listFaults, { columns });
    });
}

function clearCommand(): Command {
  return addSandboxClientOptions(
    new Command('clear').description('remove rules').argument('[ids...]', 'ids of the rules (default: all)'),
  )
    .addHelpText('after', examples)
    .action((ids: string[], flags: SandboxClientFlags) =>
      withSandbox(flags, async (client) => {
        const { removeFaults } = await import('../../tools/client/world.ts');
        const removed = await removeFaults(client, ids);
        console.log(
          flags.json === true
            ? JSON.stringify({ removed })
            : `removed ${removed} fault ${removed === 1 ? 'rule' : 'rules'}`,
        );
      }),
    );
}

/**
 * Reads a rule from the flags. The sandbox checks the names and which options the effect uses.
 *
 * @throws ConfigError
 */
function ruleOf(effect: string, flags: AddFlags): AddSandboxFaultRequest {
  const rule = {
    effect,
    operation: flags.operation,
    app_id: flags.app,
    wallet_id: flags.wallet,
    chain: flags.chain,
    event_type: flags.event,
    blocks: flags.blocks === undefined ? undefined : readCount('--blocks', flags.blocks),
    probability: flags.probability === undefined ? undefined : readShare(flags.probability),
    count: flags.count === undefined ? undefined : readCount('--count', flags.count),
    code: flags.code,
    status: flags.status === undefined ? undefined : readCount('--status', flags.status),
    headers: flags.header === undefined ? undefined : readHeaders(flags.header),
    body: flags.body === undefined ? undefined : readBody(flags.body),
    is_undocumented: flags.undocumented,
    ...(flags.delay === undefined ? {} : readDelay(flags.delay)),
    retry_after_seconds:
      flags.retryAfter === undefined
        ? undefined
        : Math.ceil(readDurationMs('--retry-after', flags.retryAfter) / 1000),
  };
  return Object.fromEntries(
    Object.entries(rule).filter(([, value]) => value !== undefined),
  ) as AddSandboxFaultRequest;
}

function readHeaders(given: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    given.map((text) => {
      const at = text.indexOf('=');
      if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
      throw invalidOption(`--header: expected a header such as retry-after=7, got \`${text}\``);
    }),
  );
}

/** Reads a body: JSON, or the path of a file that contains JSON or any other text. */
function readBody(given: string): unknown {
  const inline = parsed(given);
  if (inline !== undefined) return inline;
  try {
    const text = readFileSync(given, 'utf8');
    return parsed(text) ?? text;
  } catch {
    throw invalidOption(`--body: expected JSON or a file, got \`${given}\``);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

interface ReplayFlags extends SandboxClientFlags {
  operation?: string;
}

const replayHelp = `
The file is an HTTP Archive of \`custos verify --record\` or of the requests of a
sandbox. Each recorded response becomes a rule that answers one request of its
operation, in the order of the recording. Requests that no rule is left for are
executed as usual.

Examples:
  $ custos verify --target https://staging.example.com --record staging.har
  $ custos faults replay staging.har
  $ custos faults replay staging.har --operation getTransaction`;

function replayCommand(): Command {
  return addSandboxClientOptions(
    new Command('replay')
      .description('answer requests with the responses of a recording, each once')
      .argument('<file>', 'an HTTP Archive')
      .option('--operation <id>', 'only the responses of this operation'),
  )
    .addHelpText('after', replayHelp)
    .action((file: string, flags: ReplayFlags) =>
      withSandbox(flags, async (client) => {
        const { addFaults, recordedResponses } = await import('../../tools/client/world.ts');
        const added = await addFaults(client, await recordedResponses(file, flags.operation));
        if (flags.json === true) for (const fault of added) console.log(JSON.stringify(fault));
        else console.log(asStarted(`added ${added.length} rules; \`custos faults list\` shows them`));
      }),
    );
}

function readShare(text: string): number {
  const [, digits, percent] = /^(\d{1,3}(?:\.\d{1,9})?)(%)?$/.exec(text) ?? [];
  const share = Number(digits) / (percent === undefined ? 1 : 100);
  if (share > 0 && share <= 1) return share;
  throw invalidOption(`--probability: expected a share such as 0.25 or 25%, got \`${text}\``);
}

function readCount(option: string, text: string): number {
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
  throw invalidOption(`${option}: expected a positive number, got \`${text}\``);
}

function readDelay(text: string): { delay_ms: number; max_delay_ms?: number } {
  const [least = '', most] = text.split('-');
  const delay = { delay_ms: readDurationMs('--delay', least) };
  return most === undefined ? delay : { ...delay, max_delay_ms: readDurationMs('--delay', most) };
}

function printFault(fault: SandboxFault, { json }: SandboxClientFlags): void {
  console.log(json === true ? JSON.stringify(fault) : faultLine(fault));
}

/** Formats a line such as `fault_1  error unavailable  operation=walletRpc  25%  1 of 3 hits`. */
function faultLine(fault: SandboxFault): string {
  const texts = columns.map(({ text }) => text(fault));
  return texts.filter((text) => text !== '').join('  ');
}

const columns: readonly Column<SandboxFault>[] = [
  { title: 'id', text: ({ id }) => id },
  { title: 'effect', text: effectText, color: () => 'yellow' },
  { title: 'where', text: selectorText },
  {
    title: 'how often',
    text: ({ probability }) => (probability === 1 ? '' : `${Math.round(probability * 1e4) / 100}%`),
  },
  {
    title: 'hits',
    text: ({ count, hits }) =>
      count === null
        ? `${hits} ${hits === 1 ? 'hit' : 'hits'}`
        : `${hits} of ${count} ${count === 1 ? 'hit' : 'hits'}`,
    color: ({ count, hits }) => (hits === count ? 'dim' : undefined),
  },
];

function effectText({ effect, code, status, delay_ms: delay, max_delay_ms: most }: SandboxFault): string {
  const wait = delay === null ? [] : [most === null ? `${delay} ms` : `${delay}-${most} ms`];
  return [effect, ...(code === null ? [] : [code]), ...(status === null ? [] : [status]), ...wait].join(' ');
}

function selectorText(fault: SandboxFault): string {
  return Object.entries({
    operation: fault.operation,
    app: fault.app_id,
    wallet: fault.wallet_id,
    chain: fault.chain,
    event: fault.event_type,
  })
    .flatMap(([name, value]) => (value === null ? [] : [`${name}=${value}`]))
    .join('  ');
}
