import { Command } from 'commander';
import type { SandboxEvent } from '../../tools/client/feeds.ts';
import {
  addSandboxClientOptions,
  collect,
  invalidOption,
  type SandboxClientFlags,
  withSandbox,
} from '../sandbox-options.ts';
import { printEvent } from './event-line.ts';

interface TriggerFlags extends SandboxClientFlags {
  set?: string[];
  app?: string;
}

const examples = `
The payload is the contract's example of the event with the values of --set, and
must be valid under the contract. A path consists of names joined by dots
(block.number, steps.0.status), or is a JSON pointer. A value that replaces a
string in the example is a string; any other value is read as JSON. path:=value
is always read as JSON.

Examples:
  $ custos trigger wallet.archived --set wallet_id=fmfdj6yqly31huorjqzq38zc
  $ custos trigger wallet.funds_deposited --set amount=1000000 \\
      --set block.number=23000000
  $ custos trigger transaction.failed --set reference_id:=null`;

/** Returns the command `custos trigger`, which emits an event without making the change that it reports. */
export function triggerCommand(): Command {
  return addSandboxClientOptions(
    new Command('trigger')
      .description('emit an event in a running sandbox')
      .argument('<event>', 'type of the event, such as wallet.archived')
      .option('--set <path=value>', 'a value of the payload; repeatable', collect)
      .option('--app <id>', "app that the event belongs to (default: the sandbox's app)"),
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

/**
 * Parses assignments: `path=value` sets a string, and `path:=json` sets a JSON value.
 *
 * @throws ConfigError
 */
function valuesOf(assignments: readonly string[] = []): {
  set: Record<string, unknown>;
  set_text: Record<string, string>;
} {
  const set = new Map<string, unknown>();
  const texts = new Map<string, string>();
  for (const assignment of assignments) {
    const [, path, mark, value = ''] = /^([^=]+?)(:?=)(.*)$/s.exec(assignment) ?? [];
    if (path === undefined) {
      throw invalidOption(`--set: expected path=value or path:=json, got \`${assignment}\``);
    }
    // If a path is assigned twice, the later assignment replaces the earlier one, in either notation.
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
    throw invalidOption(`--set ${path}: expected JSON, got \`${text}\`: ${(error as Error).message}`);
  }
}
