import { Command } from 'commander';
import { asStarted, programName } from '../config/client.ts';
import type { RecordedExchange } from '../tools/client/feeds.ts';
import { requestLine } from './logs.ts';
import { addSandboxClientOptions, type SandboxClientFlags, withSandbox } from './sandbox-options.ts';
import { screenOf, wrap } from './shell/terminal.ts';

const examples = `
Examples:
  $ custos why
  $ custos why 3f2b6c1e
  $ custos why 3f2b6c1e-7a48-4d0b-9c55-0a1b2c3d4e5f --json
        the request, the response and everything around them`;

/** Returns the command `custos why`, which explains the response to a request. */
export function whyCommand(): Command {
  return addSandboxClientOptions(
    new Command('why')
      .description('explain a request to a running sandbox')
      .argument(
        '[request-id]',
        'the x-request-id of the response, or its beginning (default: the last one that failed)',
      ),
  )
    .addHelpText('after', examples)
    .action(async (given: string | undefined, flags: SandboxClientFlags) => {
      await withSandbox(flags, async (client) => {
        const { fetchLastFailed, fetchRequest } = await import('../tools/client/feeds.ts');
        const id = given ?? (await fetchLastFailed(client));
        if (id === undefined) {
          console.log(flags.json === true ? 'null' : 'no request failed');
          return;
        }
        const exchange = await fetchRequest(client, id);
        console.log(flags.json === true ? JSON.stringify(exchange) : explanation(exchange, client.url()));
      });
    });
}

function explanation(exchange: RecordedExchange, url: string): string {
  const { why, events, transaction_ids: transactions, authorized_by: keys, request } = exchange;
  const facts: [string, readonly unknown[]][] = [
    ['body', request.body === null ? [] : [JSON.stringify(request.body)]],
    ['authorized by', keys],
    ['events', events.map(({ id, type }) => `${type} ${id}`)],
    ['transactions', transactions],
    ...Object.entries(why?.evidence ?? {}).map(([name, value]): [string, readonly unknown[]] =>
      // The texts count signatures from 1.
      name === 'index'
        ? ['signature', [Number(value) + 1]]
        : [name.replaceAll('_', ' '), [typeof value === 'string' ? value : JSON.stringify(value)]],
    ),
  ];
  return [
    requestLine({ ...exchange, hint: null }),
    ...(isStoredResponse(exchange) ? [STORED_RESPONSE] : []),
    ...(why === null ? ['the request was not refused'] : reasons(exchange.id, why, url)),
    ...facts.flatMap(([name, values]) => values.map((value) => `  ${name.padEnd(20)}  ${value}`)),
  ].join('\n');
}

const STORED_RESPONSE = 'This is the stored response of an idempotency key; nothing was executed.';

/** Returns whether the response is the stored one of an earlier request with the same idempotency key. */
function isStoredResponse({ request, response }: RecordedExchange): boolean {
  return (
    response.headers.some(({ name }) => name === 'idempotent-replayed') &&
    request.headers.some(({ name }) => name.toLowerCase().endsWith('-idempotency-key'))
  );
}

type Why = NonNullable<RecordedExchange['why']>;

function reasons(id: string, { kind, problems, repairs, docs }: Why, url: string): string[] {
  const screen = screenOf();
  const steps = new Set(problems.map(({ next_step: step }) => step));
  return [
    ...problems.map(({ text }) => wrap(`${kind}: ${asStarted(text)}`, screen)),
    ...[...steps].map((step) => wrap(`  ${asStarted(step)}`, screen)),
    // Two problems can have the same repair.
    ...new Set(repairs.map((repair) => `  ${repair.title}:\n    ${commandOf(id, repair)}`)),
    ...(docs === null ? [] : [`  See ${new URL(docs, url).href}`]),
  ];
}

/** Returns the shell command that makes a repair. */
function commandOf(id: string, repair: Why['repairs'][number]): string {
  if (repair.kind === 'command') {
    const { command } = repair;
    return command.startsWith('custos ') ? `${programName()}${command.slice('custos'.length)}` : command;
  }
  const isRepeat = repair.kind === 'repeat';
  const [operation, path, body] = isRepeat
    ? ['replayRequest', [id], repair.repeat]
    : [repair.operation, Object.values(repair.path ?? {}), repair.body];
  const fields = Object.entries(body ?? {}).map(([name, value]) =>
    typeof value === 'string' ? quoted(`${name}=${value}`) : quoted(`${name}:=${JSON.stringify(value)}`),
  );
  return [`${programName()} call`, operation, ...path, ...fields].join(' ');
}

function quoted(text: string): string {
  return /^[\w.:=/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
