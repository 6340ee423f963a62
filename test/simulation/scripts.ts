import type { OperationId } from '../../src/generated/operations.ts';
import type { CallInput, CallOptions, Outcome } from './client.ts';
import type { Model } from './model.ts';
import type { World } from './world.ts';

interface SceneWallet {
  readonly id: string;
  readonly address: string;
}

/** What all clients share. */
export interface Scene {
  readonly world: World;
  readonly model: Model;
  readonly ids: {
    readonly quorums: { readonly first: string; readonly second: string };
    /** Of the first quorum. */
    readonly policy: string;
    /** Owned by one of the quorums. */
    readonly treasury: SceneWallet;
    /** Without an owner. */
    readonly hot: SceneWallet;
    readonly sol: SceneWallet;
    /** Under a policy with a running total. */
    readonly capped: SceneWallet;
    /** Uses the vault. */
    readonly saver: SceneWallet;
    readonly vault: string;
    /** Of a verified user, who has a bank account. */
    readonly payer: SceneWallet;
    readonly bankAccount: string;
    /** Of the same user; what is paid into the deposit account arrives here. */
    readonly receiver: SceneWallet;
    /** Id of the deposit account at the bank. */
    readonly depositAccount: string;
    /** Has cards that spend from the wallet. */
    readonly holder: { readonly userId: string; readonly walletId: string };
    readonly endpoint: { readonly id: string; readonly secret: string };
  };
}

/** What one client does, from its first request to its last. */
export type Script = (scene: Scene) => Promise<void>;

/** Keys are valid for 24 hours; clients stop earlier. */
export const REPEAT_MS = 20 * 3_600_000;

let counter = 0;

/** A number that no other request of this simulation has. */
export const unique = (): number => {
  counter += 1;
  return counter;
};
export const restartCounter = (): void => {
  counter = 0;
};

/**
 * Repeats a call with its idempotency key until its outcome is known, as published clients do.
 *
 * @param onAttempt called with the time of each attempt.
 */
export async function callUntilKnown<Id extends OperationId>(
  { world, model }: Scene,
  id: Id,
  input: CallInput,
  options: CallOptions,
  onAttempt: (atMs: number) => void = () => undefined,
): Promise<Outcome<Id>> {
  const idempotencyKey = `key ${unique()} of ${world.seed}`;
  const firstMs = world.clock.nowMs;
  const send = (body: object | undefined = input.body) =>
    world.call(id, { ...input, ...(body === undefined ? {} : { body }) }, { ...options, idempotencyKey });
  for (;;) {
    onAttempt(world.clock.nowMs);
    const outcome = await send();
    const isKnown = outcome.kind === 'done' || (outcome.kind === 'refused' && !isInProgress(outcome));
    if (isKnown) {
      if (outcome.kind === 'done')
        model.repeatables.push({ atMs: firstMs, text: outcome.text, repeat: (body) => send(body) });
      return outcome;
    }
    await world.scheduler.gate(`repeat ${id}`, world.life);
    if (Math.abs(world.clock.nowMs - firstMs) > REPEAT_MS) return { kind: 'unknown' };
  }
}

/** Asks until there is an answer. */
export async function read<Id extends OperationId>(
  { world }: Scene,
  id: Id,
  input: CallInput,
): Promise<Exclude<Outcome<Id>, { kind: 'unknown' }>> {
  for (;;) {
    const outcome = await world.call(id, input);
    if (outcome.kind !== 'unknown') return outcome;
    await world.scheduler.gate(`read ${id} again`, world.life);
  }
}

/** An earlier attempt of the same client has not ended. */
const isInProgress = ({ message }: { readonly message: string }): boolean =>
  message.includes('still in progress');
