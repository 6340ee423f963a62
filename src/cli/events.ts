import { Command } from 'commander';
import type { SandboxEvent } from '../client/event-feed.ts';
import { StartError } from '../start-error.ts';
import { readDurationMs } from './control/duration.ts';
import { printEvent } from './event-line.ts';
import {
  addSandboxClientOptions,
  collect,
  collectNames,
  type SandboxClientFlags,
  withSandbox,
} from './sandbox-options.ts';

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

/** `custos events …`: the events of a running sandbox. */
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
        const { awaitEvent } = await import('../client/event-feed.ts');
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
        const { listFeed } = await import('../client/event-feed.ts');
        const { after = 'start', app: appId, events: types, where } = flags;
        for await (const event of listFeed(client, { after, types, appId, where })) printEvent(event, flags);
      });
    });
}

function replayCommand(): Command {
  return addSandboxClientOptions(
    new Command('replay')
      .description('emit an event again under a new id, so that receivers do not drop it as a duplicate')
      .argument('<event-id>', 'id of the event: msg_…'),
  )
    .addHelpText('after', examples)
    .action(async (id: string, flags: EventsFlags) => {
      await withSandbox(flags, async (client) => {
        const path = `/events/${encodeURIComponent(id)}/replay`;
        printEvent(await client.call<SandboxEvent>('POST', path), flags);
      });
    });
}
