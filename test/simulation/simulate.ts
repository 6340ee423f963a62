import * as access from './access-scripts.ts';
import * as authority from './authority-scripts.ts';
import * as cards from './card-scripts.ts';
import { type Judge, makeJudge } from './judge.ts';
import * as money from './money-scripts.ts';
import { calm, type Weather } from './outside.ts';
import * as providers from './provider-scripts.ts';
import { makeScene } from './scene.ts';
import { makePatience, withVirtualTimers } from './scheduler.ts';
import { restartCounter, type Scene, type Script } from './scripts.ts';
import { openWorld, SimulationFailure, type World } from './world.ts';

export interface SimulationResult {
  readonly seed: string;
  readonly steps: number;
  /** SHA-256 of everything that happened. */
  readonly hash: string;
  readonly figures: World['figures'] & {
    readonly events: number;
    readonly deliveries: number;
    readonly records: number;
  };
}

/** A failed simulation, with what preceded it. */
export class FailedSeed extends Error {
  constructor(seed: string, step: number, lines: readonly string[], cause: unknown) {
    const shown = lines.map((line) => `  ${line.length > 300 ? `${line.slice(0, 300)}…` : line}`).join('\n');
    super(`seed ${seed} fails at step ${step}: ${(cause as Error).message}\n${shown}`, { cause });
    this.name = 'FailedSeed';
  }
}

const scripts: readonly (readonly [weight: number, script: Script])[] = [
  [5, money.transfer],
  [4, money.sendTransaction],
  [3, money.spend],
  [2, money.propose],
  [1, authority.proposeChange],
  [4, authority.authorize],
  [4, authority.agree],
  [1.5, authority.changeAuthority],
  [1, money.swap],
  [2, providers.payOut],
  [1, providers.earn],
  [1.5, providers.payIn],
  [1, cards.orderCard],
  [1.5, cards.changeCard],
  [2, cards.payByCard],
  [4, access.createWallet],
  [3, access.repeat],
  [1, access.archive],
  [2, access.signMessage],
  [2, access.createUser],
  [0.3, authority.touchTreasury],
];

/** Clients that are busy at the same time, at most. */
const MAX_CLIENTS = 6;

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/**
 * Runs one seed: the same one does the same in every run.
 *
 * @param onLine called with each line of the log.
 * @throws FailedSeed when something is true that must never be.
 */
export function simulate(
  seed: string,
  steps: number,
  onLine?: (line: string) => void,
): Promise<SimulationResult> {
  return withVirtualTimers(() => runSeed(seed, steps, onLine));
}

async function runSeed(
  seed: string,
  steps: number,
  onLine: ((line: string) => void) | undefined,
): Promise<SimulationResult> {
  restartCounter();
  const world = await openWorld(seed, onLine);
  let step = 0;
  try {
    await world.boot();
    const scene = await whileServed(world, () => makeScene(world));
    const judge = makeJudge(scene);
    for (step = 1; step <= steps; step += 1) {
      world.note(`step ${step}`);
      await takeStep(scene);
      await judge.afterStep();
    }
    await heal(scene, judge);
    await whileServed(world, () => judge.atEnd());
    const { eventCount: events, recordCount: records } = judge;
    const figures = { ...world.figures, events, records, deliveries: world.outside.received.length };
    return { seed, steps, hash: world.hash(), figures };
  } catch (error) {
    throw new FailedSeed(seed, step, world.lines, error);
  } finally {
    await world.close();
  }
}

async function takeStep(scene: Scene): Promise<void> {
  const { world } = scene;
  const { random } = world;
  const act = random.weighted<() => Promise<void> | void>([
    [45, () => startClient(scene)],
    [18, () => startJob(world)],
    [14, () => letTimePass(world)],
    [3, () => changeWeather(world)],
    [2, () => world.crash()],
    [2, () => world.light(random.between(1, 30))],
    [3, () => steerChain(world)],
    [5, () => rest(world)],
    [8, () => undefined],
  ]);
  await act();
  await world.scheduler.settle();
  await world.attend();
  for (let left = random.between(0, 8); left > 0; left -= 1) if (!(await world.resume())) break;
}

function startClient(scene: Scene): void {
  const { world } = scene;
  if (world.clients.size >= MAX_CLIENTS) return;
  const script = world.random.weighted(scripts);
  world.startClient(script.name, () => script(scene));
}

function startJob(world: World): void {
  const due = world.jobs.filter(world.isDue);
  if (due.length > 0) world.start(world.random.pick(due));
}

/** No request is in progress for as long as the longest of these. */
async function letTimePass(world: World): Promise<void> {
  const durationMs = drawDuration(world);
  if (durationMs > 10 * minute) {
    if (world.random.chance(0.5)) await rest(world);
    if (world.hasRequests()) await world.crash();
  }
  await world.advance(durationMs);
}

function drawDuration({ random }: World): number {
  return random.weighted([
    [50, random.between(1, 5 * second)],
    [25, random.between(5 * second, 2 * minute)],
    [12, random.between(minute, hour)],
    [8, random.between(hour, day)],
    [3, random.between(day, 12 * day)],
    [2, random.between(30 * day, 130 * day)],
    // Clocks of machines are set back now and then.
    [2, -random.between(1, 3 * second)],
  ]);
}

function changeWeather(world: World): void {
  const { random, weather } = world;
  const storm: Weather = {
    calls: random.pick([0, 0.05, 0.3, 0.9]),
    nodes: random.pick([0, 0.1, 0.5]),
    disk: random.pick([0, 0, 0.01, 0.05]),
    hooks: random.pick([0, 0.1, 0.5, 1]),
    blocks: random.pick([0, 0, 0.1, 0.4]),
  };
  Object.assign(weather, random.chance(0.4) ? calm : storm);
  world.note(`weather ${JSON.stringify(weather)}`);
}

async function steerChain(world: World): Promise<void> {
  const { random, outside } = world;
  const caip2 = random.pick([money.base, money.solana]);
  if (random.chance(0.5)) {
    await outside.simulated.mine(caip2, random.between(1, 3));
    world.note(`mine ${caip2}`);
    return;
  }
  const [newest] = world.disk.all<{ hash: string }>(
    'select transaction_hash as hash from transactions where caip2 = ? order by created_at_ms desc, id desc limit 1',
    caip2,
  );
  if (newest === undefined) return;
  const effect = random.pick(['drop', 'replace', 'revert'] as const);
  const isSteered = await outside.simulated.steer(caip2, newest.hash, effect);
  world.note(`steer ${newest.hash} ${effect} ${isSteered}`);
}

/** Everything that has begun ends. */
async function rest(world: World): Promise<void> {
  for (let left = 400; left > 0; left -= 1) if (!(await world.resume())) return;
}

/** Retries of everything become due, and the delays of webhooks. */
const pauses = [
  ...[5 * second, minute, minute, 10 * minute, 10 * minute, hour, 3 * hour, 6 * hour, 12 * hour],
  ...[12 * hour, day, minute, minute, 10 * minute, hour],
];

/** Everything outside works again, and time passes until nothing more is to be done. */
async function heal(scene: Scene, judge: Judge): Promise<void> {
  const { world } = scene;
  Object.assign(world.weather, calm);
  world.quench();
  world.note('everything works again');
  await passTime(world, judge);
  for (let left = MAX_SENT; left > 0 && !judge.isAtRest(); left -= 1) {
    const wallets = walletsBehindFreeNonce(scene);
    if (wallets.length === 0) break;
    for (const from of wallets) world.startClient('useFreeNonce', () => money.sendFrom(scene, from));
    await passTime(world, judge);
  }
  if (!judge.isAtRest())
    throw new SimulationFailure('something is still in progress, days after everything works again');
  const [name] = [...world.clients];
  if (name !== undefined) throw new SimulationFailure(`the client ${name} never ends`);
}

async function passTime(world: World, judge: Judge): Promise<void> {
  for (const pause of pauses) {
    await world.advance(pause);
    await runJobs(world);
    await judge.afterStep();
    if (judge.isAtRest() && world.clients.size === 0) break;
  }
}

/** An account may have this many free nonces before those of transactions that were sent. */
const MAX_SENT = 8;

/**
 * The wallets whose transactions wait for a nonce that no transaction uses any more: while the next one was sent, the
 * chain has refused the one with that nonce. The wallet's next transaction uses it. Of one that waited for another
 * transaction, it is not accepted: nothing may have been sent before it.
 */
function walletsBehindFreeNonce({ world, ids }: Scene): money.PayingWallet[] {
  const rows = world.disk.all<{ id: string }>(
    `select distinct sent.wallet_id as id from transactions as sent
     join transactions as unsent on unsent.caip2 = sent.caip2 and unsent.sender = sent.sender
       and unsent.nonce < sent.nonce and unsent.status = 'failed' and unsent.after_transaction_id is null
     where sent.status = 'broadcasted' and sent.caip2 = ? and not exists (
       select 1 from transactions as used where used.caip2 = sent.caip2 and used.sender = sent.sender
         and used.nonce = unsent.nonce and used.status <> 'failed')`,
    money.base,
  );
  const found = new Set(rows.map(({ id }) => id));
  return money.payingWallets.filter((name) => found.has(ids[name].id));
}

async function runJobs(world: World): Promise<void> {
  world.dueAll();
  for (const job of world.jobs) world.start(job);
  await world.scheduler.settle();
  for (let left = 20_000; await world.resume(); left -= 1)
    if (left === 0) throw new SimulationFailure('the jobs never end');
}

/** Runs work that waits for the server. */
async function whileServed<T>(world: World, work: () => Promise<T>): Promise<T> {
  let result: { readonly value: T } | { readonly error: unknown } | undefined;
  world.scheduler.start('the judge', world.life, () =>
    work().then(
      (value) => {
        result = { value };
      },
      (error: unknown) => {
        result = { error };
      },
    ),
  );
  for (let patience = makePatience(); ; ) {
    await world.scheduler.settle();
    await world.attend();
    if (result !== undefined) break;
    if (await world.resume()) patience = makePatience();
    else if (patience.isOver())
      throw new SimulationFailure(
        `the judge waits for nothing that can happen; ${world.scheduler.describe()}`,
      );
  }
  if ('error' in result) throw result.error;
  return result.value;
}
