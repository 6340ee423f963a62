import { Command } from 'commander';
import type { SandboxEvent } from '../client/event-feed.ts';
import { printEvent } from './event-line.ts';
import {
  addSandboxClientOptions,
  collect,
  type SandboxClientFlags,
  withSandbox,
  wrongOption,
} from './sandbox-options.ts';

interface TriggerFlags extends SandboxClientFlags {
  set?: string[];
  app?: string;
}

const examples = `
The payload is the contract's own example of the event with the values of --set in place, and must keep the contract.
A path is names joined by dots (block.number, steps.0.status) or a JSON pointer. A value stays a text where the example
holds one and is read as JSON elsewhere; path:=value is JSON anywhere.

Examples:
  $ custos trigger wallet.archived --set wallet_id=fmfdj6yqly31huorjqzq38zc
  $ custos trigger wallet.funds_deposited --set amount=1000000 --set block.number=23000000
  $ custos trigger transaction.failed --set reference_id:=null`;

/** `custos trigger`: an event without the change that it tells of. */
export function triggerCommand(): Command {
  return addSandboxClientOptions(
    new Command('trigger')
      .description('let an event happen in a running sandbox')
      .argument('<event>', 'type of the event, such as wallet.archived')
      .option('--set <path=value>', 'a value of the payload; repeatable', collect)
      .option('--app <id>', "app that the event belongs to (default: the sandbox's own)"),
  )
    .addHelpText('after', examples)
    .action(async (type: string, flags: TriggerFlags) => {
      const body = {
        type,
        ...(flags.app === undefined ? {} : { app_id: flags.app }),
        ...valuesOf(flags.set),
      };
      await withSandbox(flags, async (client) => {
        printEvent(await client.call<SandboxEvent>('POST', '/events', { body }), flags);
      });
    });
}

/** Throws ConfigError. */
function valuesOf(assignments: readonly string[] = []): {
  set: Record<string, unknown>;
  set_text: Record<string, string>;
} {
  const set = new Map<string, unknown>();
  const texts = new Map<string, string>();
  for (const assignment of assignments) {
    const [, path, mark, value = ''] = /^([^=]+?)(:?=)(.*)$/s.exec(assignment) ?? [];
    if (path === undefined) throw wrongOption(`--set \`${assignment}\` must be path=value or path:=json`);
    // The last one counts, however it was written.
    set.delete(path);
    texts.delete(path);
    if (mark === '=') texts.set(path, value);
    else set.set(path, readJson(path, value));
  }
  return { set: Object.fromEntries(set), set_text: Object.fromEntries(texts) };
}

function readJson(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw wrongOption(`--set ${path}: \`${text}\` is not JSON: ${(error as Error).message}`);
  }
}
