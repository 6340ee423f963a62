import { Command } from 'commander';
import { asStarted } from '../config/client.ts';
import type { RecordedRequest } from '../tools/client/feeds.ts';
import type { SandboxClient } from '../tools/client/sandbox-client.ts';
import {
  addSandboxClientOptions,
  collectNames,
  type SandboxClientFlags,
  withSandbox,
} from './sandbox-options.ts';
import { stopSignal } from './serve-until-stopped.ts';
import { colorOfStatus, printable, type Screen, screenOf } from './shell/terminal.ts';

interface LogsFlags extends SandboxClientFlags {
  operation?: string[];
  status?: string;
  code?: string;
  wallet?: string;
  after?: string;
  follow: boolean;
}

const examples = `
Examples:
  $ custos logs
  $ custos logs --status 4xx --after start
  $ custos logs --code policy_violation --json
  $ custos logs --wallet fmfdj6yqly31huorjqzq38zc --after start --no-follow`;

/** Returns the command `custos logs`, which shows the requests to a running sandbox as they arrive. */
export function logsCommand(): Command {
  return addSandboxClientOptions(
    new Command('logs')
      .description('print the requests to a running sandbox as they arrive, and why they were refused')
      .option('--operation <ids>', 'comma-separated operation ids; repeatable', collectNames)
      .option('--status <status>', 'only this status: 404, 4xx, 0 for a cut connection, or failed')
      .option('--code <code>', 'only refusals with this error code')
      .option('--wallet <id>', 'only requests about this wallet')
      .option('--after <position>', 'start, now, or the id of a request')
      .option('--no-follow', 'print the requests so far and stop'),
  )
    .addHelpText('after', examples)
    .action((flags: LogsFlags) => withSandbox(flags, (client) => printRequests(client, flags)));
}

async function printRequests(client: SandboxClient, flags: LogsFlags): Promise<void> {
  const { operation: operations, status, code, wallet, json, follow } = flags;
  const { after = follow ? 'now' : 'start' } = flags;
  const { followRequests, listRequests } = await import('../tools/client/feeds.ts');
  const query = { after, operations, status, code, wallet };
  const tell = (message: string): void => console.error(`custos: ${message}`);
  const observer = {
    onStart: () => {
      const earlier = flags.after === undefined ? '; `--after start` shows the earlier ones too' : '';
      tell(`following the requests to ${client.url()}${earlier}`);
    },
    onDisconnect: (error: Error) => tell(`${error.message}; trying again`),
    onReconnect: () => tell('connected again'),
    onReset: () => tell('the log was emptied; the following requests arrived since then'),
  };
  const requests = follow
    ? followRequests(client, query, { signal: stopSignal(), observer })
    : listRequests(client, query);
  for await (const request of requests)
    console.log(json === true ? JSON.stringify(request) : requestLine(request));
}

/** Formats a request as one line, with the hint of an error below it. */
export function requestLine(request: RecordedRequest, screen: Screen = screenOf()): string {
  const { received_at_ms: atMs, method, path, status, code, duration_ms: ms, id, hint } = request;
  const time = new Date(atMs).toISOString().slice(11, 23);
  const outcome = code === null ? String(status) : `${status} ${code}`;
  const line = [
    screen.paint('dim', time),
    screen.paint(colorOfStatus(status), outcome),
    `${method} ${printable(path)}`,
    screen.paint('dim', `${Math.round(ms)} ms`),
    screen.paint('dim', id),
  ].join('  ');
  return hint === null ? line : `${line}\n              ${asStarted(hint)}`;
}
