import { asStarted, programName } from '../../config/client.ts';
import type { RunningSandboxFile } from '../../tools/client/running-sandboxes.ts';
import { type Column, type Screen, screenOf, table, timeOn } from './terminal.ts';

/** A running sandbox, in the form in which `custos` without a command shows it. */
interface Shown extends RunningSandboxFile {
  readonly isHere: boolean;
}

const columnsOn = (screen: Screen): readonly Column<Shown>[] => [
  {
    title: 'sandbox',
    text: ({ base_url: url }) => url,
    color: ({ isHere }) => (isHere ? 'bold' : undefined),
  },
  { title: 'folder', text: ({ started_in: folder = '' }) => folder, canBeCut: true },
  { title: 'data', text: ({ data }) => data ?? 'in memory', canBeCut: true },
  {
    title: 'started',
    text: ({ started_at_ms: atMs }) => (atMs === undefined ? '' : timeOn(screen, atMs)),
    color: () => 'dim',
  },
];

const first: readonly (readonly [string, string])[] = [
  ['custos sandbox --seed demo --seed-data', 'start one, with users and funded wallets'],
  ['custos exec -- npm test', 'run a command beside a sandbox of its own'],
  ['custos init', 'write tests to start with into this folder'],
  ['custos --help', 'all commands'],
];

const next: readonly (readonly [string, string])[] = [
  ['custos open', 'its inspector in a browser'],
  ['custos logs', 'its requests, and why they were refused'],
  ['custos why', 'all about the last request that failed, and its repairs'],
  ['custos call createWallet chain_type=ethereum', 'one request'],
  ['custos token alice', 'an access token of a user'],
  ['custos clock', 'its time; `custos clock next` is what becomes due'],
  ['custos --help', 'all commands'],
];

/**
 * Returns the output of `custos` without a command: the running sandboxes and useful commands. The sandbox that was
 * started in the current folder comes first.
 */
export async function overview(screen: Screen = screenOf()): Promise<string> {
  const { isStartedHere, listRunningSandboxes } = await import('../../tools/client/running-sandboxes.ts');
  const running = listRunningSandboxes()
    .map((each): Shown => ({ ...each, isHere: isStartedHere(each) }))
    .sort((one, other) => Number(other.isHere) - Number(one.isHere));
  const commands = running.length === 0 ? first : next;
  const list = table(
    [
      {
        title: 'command',
        text: ([command]) => `$ ${programName()}${command.slice('custos'.length)}`,
        color: () => 'cyan',
      },
      { title: 'what it does', text: ([, text]) => asStarted(text), canBeCut: true },
    ],
    commands,
    { ...screen, isTerminal: false },
  );
  return [
    running.length === 0 ? 'No sandbox is running.' : table(columnsOn(screen), running, screen),
    '',
    running.length === 0 ? 'Start with:' : 'Next:',
    ...list.split('\n').map((line) => `  ${line}`),
  ].join('\n');
}
