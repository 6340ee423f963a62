import { Command } from 'commander';
import { StartError } from '../../config/start-error.ts';
import type { SandboxEvent } from '../../tools/client/feeds.ts';
import { readDurationMs } from '../control/clock.ts';
import {
  addSandboxClientOptions,
  collect,
  collectNames,
  invalidOption,
  readHttpUrl,
  type SandboxClientFlags,
  withSandbox,
} from '../sandbox-options.ts';
import { stopSignal } from '../serve-until-stopped.ts';
import { eventLine, forwardLine, isAccepted, printEvent } from './event-line.ts';
import { readListenSecret } from './listen.ts';

interface EventsFlags extends SandboxClientFlags {
  after?: string;
  app?: string;
  events?: string[];
  timeout?: string;
  where?: string[];
}

const examples = `
Examples:
  $ custos events wait wallet.archived --timeout 5s \\
      --where wallet_id=fmfdj6yqly31huorjqzq38zc
  $ custos events wait 'transaction.*' --after msg_b1n9u2k7c4w8x0a5t6e3r2qz
  $ custos events list --events 'user.*'
  $ custos events replay msg_b1n9u2k7c4w8x0a5t6e3r2qz`;

/** Returns the command `custos events …`, which lists, awaits and replays the events of a running sandbox. */
export function eventsCommand(): Command {
  const events = new Command('events')
    .description('list, wait for and replay the events of a running sandbox')
    .addHelpText('after', examples);
  events.addCommand(waitCommand());
  events.addCommand(listCommand());
  events.addCommand(replayCommand());
  return events;
}

const waitHelp = `
Prints the first matching event and exits with 0, or exits with 1 on timeout. By
default, events since the start (or reset) of the sandbox match, so an event
emitted before the command is not missed. With --after now, only later events
match, and a message on standard error says when the command is waiting.
${examples}`;

function waitCommand(): Command {
  return addSandboxClientOptions(
    new Command('wait')
      .description('wait for an event; the exit code shows whether it occurred')
      .argument('<type>', 'type of the event, or a pattern such as wallet.*')
      .option('--timeout <duration>', 'how long to wait: 500ms, 5s, 2m', '10s')
      .option('--after <position>', 'start, now, or the id of an event', 'start')
      .option('--where <path=value>', 'a value that the payload must have; repeatable', collect)
      .option('--app <id>', 'only events of this app'),
  )
    .addHelpText('after', waitHelp)
    .action(async (type: string, flags: EventsFlags) => {
      const timeoutMs = readDurationMs('--timeout', flags.timeout ?? '');
      await withSandbox(flags, async (client) => {
        const { awaitEvent } = await import('../../tools/client/feeds.ts');
        const { after = 'start', app: appId, where } = flags;
        const query = { after, types: [type], appId, where };
        const onStart = () =>
          console.error(after === 'now' ? 'custos: waiting for new events' : 'custos: waiting');
        const event = await awaitEvent(client, query, { timeoutMs, onStart });
        if (event === undefined)
          throw new StartError(`expected an event \`${type}\` within ${flags.timeout}, got none`);
        printEvent(event, flags);
      });
    });
}

function listCommand(): Command {
  return addSandboxClientOptions(
    new Command('list')
      .description('print the events so far, oldest first')
      .option('--events <types>', 'comma-separated types or patterns; repeatable', collectNames)
      .option('--after <position>', 'start, or the id of an event', 'start')
      .option('--where <path=value>', 'a value that the payload must have; repeatable', collect)
      .option('--app <id>', 'only events of this app'),
  )
    .addHelpText('after', examples)
    .action(async (flags: EventsFlags) => {
      await withSandbox(flags, async (client) => {
        const { listFeed } = await import('../../tools/client/feeds.ts');
        const { after = 'start', app: appId, events: types, where } = flags;
        for await (const event of listFeed(client, { after, types, appId, where })) printEvent(event, flags);
      });
    });
}

const replayHelp = `
With --to, nothing is emitted: the event is posted once to the URL under its own
id, with a new signature. The exit code is 1 if the endpoint does not accept it.
${examples}
  $ custos events replay msg_b1n9u2k7c4w8x0a5t6e3r2qz \\
      --to http://127.0.0.1:3000/hook`;

interface ReplayFlags extends SandboxClientFlags {
  to?: string;
  secret?: string;
}

function replayCommand(): Command {
  return addSandboxClientOptions(
    new Command('replay')
      .description('emit an event again under a new id, or post it to an endpoint under its own')
      .argument('<event-id>', 'id of the event: msg_…')
      .option('--to <url>', 'endpoint to post the signed event to')
      .option('--secret <whsec_…>', 'secret to sign with, or @file (default: that of custos listen)'),
  )
    .addHelpText('after', replayHelp)
    .action(async (id: string, flags: ReplayFlags) => {
      const path = `/events/${encodeURIComponent(id)}`;
      const { to, secret } = flags;
      if (to === undefined && secret !== undefined) throw invalidOption('--secret: needs --to');
      const target = to === undefined ? undefined : readHttpUrl('--to', to);
      await withSandbox(flags, async (client) => {
        if (target === undefined)
          printEvent(await client.call<SandboxEvent>('POST', `${path}/replay`), flags);
        else await post(await client.call<SandboxEvent>('GET', path), target, flags);
      });
    });
}

async function post(event: SandboxEvent, target: URL, { data, secret, json }: ReplayFlags): Promise<void> {
  const [{ forwardEvent, signEvent }, { listenSecret }] = await Promise.all([
    import('../../tools/client/forward-event.ts'),
    import('../../tools/client/forward-event.ts'),
  ]);
  const signed = signEvent(event, secret === undefined ? listenSecret(data) : readListenSecret(secret));
  const forwarded = await forwardEvent(target, signed, stopSignal());
  if (!isAccepted(forwarded)) throw new StartError(`${target}: ${forwardLine(forwarded)}`);
  if (json === true) printEvent(event, { json });
  else console.log(`${eventLine(event)}  ${forwardLine(forwarded)}`);
}
