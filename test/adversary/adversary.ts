import { setTimeout as pause } from 'node:timers/promises';
import { randomOf } from '../simulation/random.ts';
import { compromisedServer } from './compromised-server.ts';
import { environment } from './environment.ts';
import { startHonestClient } from './honest-client.ts';
import { type Bounds, type Fault, judge, p99 } from './judge.ts';
import { lyingNode } from './lying-node.ts';
import { makeNotes, type Notes } from './observe.ts';
import { outsider } from './outsider.ts';
import { startTenant } from './tenant.ts';
import { openWorld, type World, watch } from './world.ts';

export interface Plan {
  readonly seed: string;
  readonly databaseUrl: string;
  /** How long the honest client is alone. */
  readonly aloneMs: number;
  readonly attackMs: number;
  /** The time between two acts of the environment, and those that a lie lasts. */
  readonly calmMs: number;
  readonly liesMs: number;
  /** Whether the environment does what takes long. */
  readonly isLong: boolean;
  readonly workers: number;
  /** The p99 of the honest client that is never too slow. */
  readonly floorMs: number;
}

const attackers = ['outsider', 'tenant', 'compromised server', 'lying node', 'environment'] as const;

/** Far above what was measured, far below what a fault of these kinds took. */
const bounds: Omit<Bounds, 'floorMs'> = {
  slowdown: 3,
  megabytes: { server: 700, signer: 700 },
  stallCpuMs: 1_500,
  stallMs: 15_000,
  attackers,
};

export interface Outcome {
  readonly faults: readonly Fault[];
  /** What happened, for people. */
  readonly figures: Readonly<Record<string, unknown>>;
}

/** Runs all attackers at once beside an honest client. */
export async function runAdversary(plan: Plan): Promise<Outcome> {
  const notes = makeNotes();
  await using world = await openWorld(plan.databaseUrl, notes, { CUSTOS_WORKERS: String(plan.workers) });
  const after = new AbortController();
  const background = [watch(world, notes, after.signal), mine(world, after.signal)];
  const honest = await startHonestClient(world, notes);
  try {
    await honest.work({ isAttacked: false, signal: AbortSignal.timeout(plan.aloneMs) });
    const during = AbortSignal.timeout(plan.attackMs);
    await Promise.all([
      honest.work({ isAttacked: true, signal: during }),
      attack(world, { plan, notes, honest, signal: during }),
    ]);
    await honest.checkKept();
  } finally {
    after.abort();
    await Promise.all(background);
    await honest.close();
  }
  return { faults: judge(notes, { ...bounds, floorMs: plan.floorMs }), figures: figuresOf(notes) };
}

async function attack(
  world: World,
  {
    plan,
    notes,
    honest,
    signal,
  }: { plan: Plan; notes: Notes; honest: Awaited<ReturnType<typeof startHonestClient>>; signal: AbortSignal },
): Promise<void> {
  const tenant = await startTenant(world, {
    ...{ other: honest.wallet.id, quorum: honest.quorum, marks: honest.marks },
  });
  const how = (name: (typeof attackers)[number]) => ({
    ...{ notes, signal, random: randomOf(`${plan.seed} ${name}`) },
  });
  await Promise.all([
    outsider(world, { ...how('outsider'), ids: tenant.ids }),
    tenant.attack(how('tenant')),
    compromisedServer(world, how('compromised server')),
    lyingNode(world, { ...how('lying node'), liesMs: plan.liesMs }),
    environment(world, { ...how('environment'), calmMs: plan.calmMs, isLong: plan.isLong }),
  ]);
  await tenant.close();
}

const BLOCK_MS = 400;

async function mine({ anvil }: World, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await anvil.ask('evm_mine');
    await pause(BLOCK_MS);
  }
}

function figuresOf(notes: Notes): Outcome['figures'] {
  const times = (isAttacked: boolean) =>
    notes.calls
      .filter((call) => call.isAttacked === isAttacked && call.kind !== 'transfer')
      .map(({ fromMs, untilMs }) => untilMs - fromMs);
  const largest = (name: string) =>
    Math.round(
      Math.max(0, ...notes.memory.filter(({ process }) => process === name).map((each) => each.megabytes)),
    );
  return {
    honestRequests: notes.calls.length,
    transfers: notes.calls.filter(({ kind, status }) => kind === 'transfer' && status === 200).length,
    p99AloneMs: Math.round(p99(times(false))),
    p99AttackedMs: Math.round(p99(times(true))),
    attacks: [...notes.attacks.values()].reduce((sum, count) => sum + count, 0),
    cases: notes.attacks.size,
    cuts: notes.cuts.length,
    slowestHealthMs: Math.round(Math.max(0, ...notes.probes.map(({ fromMs, untilMs }) => untilMs - fromMs))),
    mostThreadMs: Math.max(0, ...notes.probes.map(({ cpuMs }) => cpuMs ?? 0)),
    serverMegabytes: largest('server'),
    signerMegabytes: largest('signer'),
  };
}
