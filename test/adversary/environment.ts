import { setTimeout as pause } from 'node:timers/promises';
import type { Random } from '../simulation/random.ts';
import { deckOf } from './attack.ts';
import type { Notes } from './observe.ts';
import type { World } from './world.ts';

interface EnvironmentCase {
  readonly subject: string;
  /** Whether requests may be refused meanwhile. */
  readonly isCut: boolean;
  /** Takes seconds, so that a short run leaves it out. */
  readonly isLong?: boolean;
  readonly act: (world: World, random: Random) => Promise<void>;
}

/* Steps of the clock are left out: the server takes no clock, and libfaketime is not on every machine. */
const environmentCases: readonly EnvironmentCase[] = [
  {
    ...{ subject: 'all connections to the database are cut', isCut: true },
    act: async ({ proxy }) => proxy.cutAll(),
  },
  {
    ...{ subject: 'connections to the database are cut at a commit', isCut: true },
    async act({ proxy }) {
      proxy.break('commit', 'cut');
      await pause(300);
      proxy.heal();
    },
  },
  {
    ...{ subject: 'answers to commits are lost', isCut: true },
    async act({ proxy }) {
      proxy.break('commit', 'cut-answer');
      await pause(300);
      proxy.heal();
    },
  },
  {
    ...{ subject: 'the connections to the database are silent', isCut: true, isLong: true },
    async act({ proxy }) {
      proxy.silenceAll();
      await pause(15_000);
      proxy.cutAll();
    },
  },
  {
    ...{ subject: 'the log is not read', isCut: false },
    async act({ server }) {
      server.holdOutput(true);
      await pause(2_000);
      server.holdOutput(false);
    },
  },
  {
    ...{ subject: 'the signals of a reload', isCut: false },
    async act({ server, signer }) {
      server.signal('SIGHUP');
      signer.signal('SIGHUP');
    },
  },
  {
    ...{ subject: 'the signer is stopped for a while', isCut: true },
    async act({ signer }) {
      signer.signal('SIGSTOP');
      await pause(700);
      signer.signal('SIGCONT');
    },
  },
  { subject: 'the signer is killed', isCut: true, act: ({ signer }) => signer.kill('SIGKILL') },
  { subject: 'the signer is ended', isCut: true, isLong: true, act: ({ signer }) => signer.kill('SIGTERM') },
  {
    ...{ subject: 'a worker is killed, if there are several', isCut: true, isLong: true },
    act: ({ server }, random) => server.killChild(random),
  },
  { subject: 'the server is killed', isCut: true, isLong: true, act: ({ server }) => server.kill('SIGKILL') },
  {
    ...{ subject: 'the server is killed, and its next log has a full disk', isCut: true, isLong: true },
    act: ({ server }) => server.kill('SIGKILL', true),
  },
];

/** Cuts, stops and kills, with calm between. */
export async function environment(
  world: World,
  {
    notes,
    random,
    signal,
    calmMs,
    isLong,
  }: { notes: Notes; random: Random; signal: AbortSignal; calmMs: number; isLong: boolean },
): Promise<void> {
  const deck = deckOf(
    environmentCases.filter((each) => isLong || each.isLong !== true),
    random,
  );
  for (;;) {
    await pause(calmMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    const { subject, isCut, act } = deck.next().value;
    notes.attack('environment', subject);
    if (isCut) await notes.cut(subject, 'environment', () => act(world, random));
    else await act(world, random);
  }
}
