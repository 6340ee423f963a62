import { Command } from 'commander';
import { systemClock } from '../../adapters/runtime.ts';
import type { SandboxClient } from '../../tools/client/sandbox-client.ts';
import type { SandboxClock, SandboxUpcomingEntry, SetSandboxClockRequest } from '../../tools/client/world.ts';
import {
  addSandboxClientOptions,
  addSandboxListOptions,
  invalidOption,
  printSandboxList,
  type SandboxClientFlags,
  withSandbox,
} from '../sandbox-options.ts';
import { type Column, type Screen, screenOf, timeOn } from '../shell/terminal.ts';

const unitsMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/**
 * Parses a duration into milliseconds. A number without a unit means seconds.
 *
 * @throws ConfigError
 */
export function readDurationMs(option: string, text: string): number {
  const [, digits, unit = 's'] = /^(\d{1,9})(ms|s|m|h|d)?$/.exec(text) ?? [];
  if (digits === undefined) {
    throw invalidOption(`${option}: expected a duration such as 500ms, 5s or 2m, got \`${text}\``);
  }
  return Number(digits) * unitsMs[unit]!;
}

const examples = `
Examples:
  $ custos clock
  $ custos clock freeze
  $ custos clock advance 1h
  $ custos clock next
  $ custos clock advance --to-next
  $ custos clock set 2026-07-01T12:00:00Z
  $ custos clock set now
  $ custos clock resume`;

/** Returns the command `custos clock …`, which controls the clock of a running sandbox. */
export function clockCommand(): Command {
  const clock = new Command('clock')
    .description('show, freeze, set or advance the clock of a running sandbox')
    .addHelpText('after', examples);
  clock.addCommand(showCommand(), { isDefault: true });
  clock.addCommand(changing('freeze', 'stop the clock', () => ({ frozen: true })));
  clock.addCommand(changing('resume', 'let the clock run on', () => ({ frozen: false })));
  clock.addCommand(
    changing(
      'set',
      'set the time; what is due by then runs first',
      (time) => ({ now_ms: time === 'now' ? systemClock.now() : readTimeMs(time) }),
      {
        name: '<time>',
        description:
          'ISO 8601, such as 2026-07-01T12:00:00Z, Unix milliseconds, or `now`: that of the machine',
      },
    ),
  );
  clock.addCommand(advanceCommand());
  clock.addCommand(nextCommand());
  return clock;
}

function showCommand(): Command {
  return addSandboxClientOptions(new Command('show').description('print the time')).action(
    (flags: SandboxClientFlags) =>
      withSandbox(flags, async (client) => {
        const { readClock } = await import('../../tools/client/world.ts');
        printClock(await readClock(client), flags);
      }),
  );
}

function advanceCommand(): Command {
  const command = new Command('advance')
    .description('move the time forward; what is due by then runs first')
    .argument('[duration]', '500ms, 5s, 2m, 3h, 4d')
    .option('--to-next', 'to what becomes due next, see `custos clock next`');
  return addSandboxClientOptions(command).action(
    (duration: string | undefined, flags: SandboxClientFlags & { readonly toNext?: true }) => {
      if ((duration === undefined) === (flags.toNext === undefined)) {
        throw invalidOption('advance: expected either a duration or --to-next');
      }
      const advanceMs = duration === undefined ? undefined : readDurationMs('advance', duration);
      return withSandbox(flags, async (client) => {
        const { advanceToNext, changeClock } = await import('../../tools/client/world.ts');
        const clock =
          advanceMs === undefined
            ? await advanceToNext(client)
            : await changeClock(client, { advance_ms: advanceMs });
        printClock(clock, flags);
      });
    },
  );
}

function nextCommand(): Command {
  const command = new Command('next').description('print what becomes due next, earliest first');
  return addSandboxListOptions(command).action(async (flags: SandboxClientFlags) => {
    const { listUpcoming, readClock } = await import('../../tools/client/world.ts');
    let nowMs = 0;
    const read = async (client: SandboxClient) => {
      nowMs = (await readClock(client)).now_ms;
      return listUpcoming(client);
    };
    // Relative times are relative to the clock of the sandbox.
    const columns = (screen: Screen): Column<SandboxUpcomingEntry>[] => [
      {
        title: 'due',
        text: ({ at, at_ms: atMs }) => (screen.isTerminal ? timeOn(screen, atMs, nowMs) : at),
        color: () => 'cyan',
      },
      { title: 'what', text: ({ kind }) => kind.replaceAll('_', ' ') },
      { title: 'id', text: ({ resource_id: id }) => id, color: () => 'dim' },
    ];
    await printSandboxList(flags, read, { columns, empty: 'nothing becomes due' });
  });
}

function changing(
  name: string,
  description: string,
  changeOf: (text: string) => SetSandboxClockRequest,
  argument?: { readonly name: string; readonly description: string },
): Command {
  const command = new Command(name).description(description);
  if (argument !== undefined) command.argument(argument.name, argument.description);
  return addSandboxClientOptions(command).action((...given: unknown[]) => {
    const flags = given[argument === undefined ? 0 : 1] as SandboxClientFlags;
    const change = changeOf(argument === undefined ? '' : String(given[0]));
    return withSandbox(flags, async (client) => {
      const { changeClock } = await import('../../tools/client/world.ts');
      printClock(await changeClock(client, change), flags);
    });
  });
}

/**
 * Parses Unix milliseconds, or a time in ISO 8601.
 *
 * @throws ConfigError
 */
function readTimeMs(text: string): number {
  if (/^\d{10,15}$/.test(text)) return Number(text);
  const timeMs = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isFinite(timeMs)) return timeMs;
  throw invalidOption(`set: expected a time such as 2026-07-01T12:00:00Z, got \`${text}\``);
}

function printClock(clock: SandboxClock, { json }: SandboxClientFlags): void {
  console.log(json === true ? JSON.stringify(clock) : clockLine(clock));
}

function clockLine({ now, frozen }: SandboxClock): string {
  return `${now}  ${frozen ? screenOf().paint('cyan', 'frozen') : 'running'}`;
}
