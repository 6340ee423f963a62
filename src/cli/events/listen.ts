import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { InvalidWebhookSecretError, parseWebhookSecret } from '../../engine/crypto/webhook-signature.ts';
import type { FeedObserver, SandboxEvent } from '../../tools/client/feeds.ts';
import type { Forwarded, SignedEvent } from '../../tools/client/forward-event.ts';
import type { SandboxClient } from '../../tools/client/sandbox-client.ts';
import {
  addSandboxClientOptions,
  collectNames,
  invalidOption,
  readHttpUrl,
  type SandboxClientFlags,
  withSandbox,
} from '../sandbox-options.ts';
import { stopSignal } from '../serve-until-stopped.ts';
import { screenOf } from '../shell/terminal.ts';
import { eventLine, forwardLine } from './event-line.ts';

/**
 * Reads the secret of a `--secret` option, or of the file after its `@`.
 *
 * @throws ConfigError
 */
export function readListenSecret(text: string): string {
  try {
    const secret = text.startsWith('@') ? readFileSync(text.slice(1), 'utf8').trim() : text;
    parseWebhookSecret(secret);
    return secret;
  } catch (error) {
    if (error instanceof InvalidWebhookSecretError) throw invalidOption(`--secret: ${error.message}`);
    throw invalidOption(`--secret: \`${text.slice(1)}\` cannot be read`);
  }
}

interface ListenFlags extends SandboxClientFlags {
  forwardTo?: string;
  events?: string[];
  app?: string;
  secret?: string;
  printSecret?: boolean;
  after?: string;
}

const examples = `
Signs each event like a webhook (headers webhook-id, webhook-timestamp,
webhook-signature and their svix-… aliases) with the printed secret, and posts
it once: failures are printed and not retried. Events are forwarded one by one
in order. The command continues after the sandbox restarts or is reset.

Examples:
  $ custos listen --forward-to http://127.0.0.1:3000/hook
  $ custos listen --events 'wallet.*,user.created' --json
  $ custos listen --forward-to http://127.0.0.1:3000/hook \\
      --secret @webhook-secret.txt`;

/** Returns the command `custos listen`, which prints and forwards the events of a running sandbox as they occur. */
export function listenCommand(): Command {
  return addSandboxClientOptions(
    new Command('listen')
      .description('print the events of a running sandbox as they occur, and forward them')
      .option('--forward-to <url>', 'endpoint to post the signed events to')
      .option('--events <types>', 'comma-separated types or patterns; repeatable', collectNames)
      .option('--app <id>', 'only events of this app')
      .option('--secret <whsec_…>', 'secret to sign with, or @file (default: the same at every start)')
      .option('--print-secret', 'print the secret and stop')
      .option('--after <position>', 'start, now, or the id of an event to continue after', 'now'),
  )
    .addHelpText('after', examples)
    .action(async (flags: ListenFlags) => {
      const target = flags.forwardTo === undefined ? undefined : readHttpUrl('--forward-to', flags.forwardTo);
      const given = flags.secret === undefined ? undefined : readListenSecret(flags.secret);
      const { listenSecret } = await import('../../tools/client/forward-event.ts');
      const secret = given ?? listenSecret(flags.data);
      if (flags.printSecret === true) console.log(secret);
      else await withSandbox(flags, (client) => listen(client, { flags, target, secret }));
    });
}

interface Listening {
  readonly flags: ListenFlags;
  readonly target: URL | undefined;
  readonly secret: string;
}

async function listen(client: SandboxClient, listening: Listening): Promise<void> {
  const { flags, target, secret } = listening;
  const [{ followFeed }, { forwardEvent, signEvent }] = await Promise.all([
    import('../../tools/client/feeds.ts'),
    import('../../tools/client/forward-event.ts'),
  ]);
  const signal = stopSignal();
  const query = { after: flags.after ?? 'now', types: flags.events, appId: flags.app };
  const observer = observerOf(client, listening);
  for await (const event of followFeed(client, query, { signal, observer })) {
    const signed = signEvent(event, secret);
    const forwarded = target === undefined ? undefined : await forwardEvent(target, signed, signal);
    printEvent(flags, event, signed, forwarded);
  }
}

function observerOf(client: SandboxClient, { flags, target, secret }: Listening): FeedObserver {
  return {
    onStart() {
      const forwarding = target === undefined ? '' : `, forwarding to ${target}`;
      const url = client.url();
      if (flags.json === true) {
        const forwardTo = target === undefined ? {} : { forward_to: target.href };
        console.log(JSON.stringify({ msg: 'listening', url, ...forwardTo, secret }));
      } else {
        const { paint } = screenOf();
        console.log(`Listening to ${paint('bold', url)}${forwarding}\nSecret ${paint('cyan', secret)}\n`);
      }
    },
    onDisconnect: ({ message }) => console.error(`custos: ${message.split(';')[0]}; waiting to reconnect`),
    onReconnect: () => console.error('custos: reconnected to the sandbox'),
    onReset: () => console.error('custos: the sandbox was reset; the following events occurred since then'),
  };
}

function printEvent(
  { json }: ListenFlags,
  event: SandboxEvent,
  { headers }: SignedEvent,
  forwarded: Forwarded | undefined,
): void {
  if (json !== true) {
    console.log(
      forwarded === undefined ? eventLine(event) : `${eventLine(event)}  ${forwardLine(forwarded)}`,
    );
    return;
  }
  const { durationMs, ...result } = forwarded ?? { durationMs: 0 };
  const forward = forwarded === undefined ? {} : { forward: { ...result, duration_ms: durationMs } };
  console.log(JSON.stringify({ msg: 'event', ...event, headers, ...forward }));
}
