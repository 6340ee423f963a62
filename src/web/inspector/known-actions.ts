import type { WalletActionStep } from '../../generated/schemas.ts';
import type { SandboxAction, SandboxEvent } from '../../sandbox/generated/schemas.ts';

/** The facts about a wallet action from its events. */
export interface KnownAction {
  readonly id: string;
  readonly walletId: string;
  /** The kind of the action, such as `transfer`, `swap` or `earn_deposit`. */
  readonly family: string;
  /** The status in its latest event. */
  readonly status: string;
  readonly beganMs: number;
  readonly changes: number;
}

/** Returns the wallet actions in events, newest first. */
export function actionsIn(events: readonly SandboxEvent[]): KnownAction[] {
  const found = new Map<string, KnownAction>();
  for (const { type, payload, created_at_ms: atMs } of events) {
    const { wallet_action_id: id, wallet_id: walletId, status } = payload;
    if (typeof id !== 'string' || typeof walletId !== 'string' || typeof status !== 'string') continue;
    const earlier = found.get(id);
    const [, family = ''] = type.split('.');
    found.set(id, {
      id,
      walletId,
      family,
      status,
      beganMs: earlier?.beganMs ?? atMs,
      changes: (earlier?.changes ?? 0) + 1,
    });
  }
  return [...found.values()].reverse();
}

/** Returns the actions of a list, newest first, with the status of newer events. Events expire, but actions do not. */
export function knownActions(
  listed: readonly SandboxAction[],
  events: readonly SandboxEvent[],
): readonly KnownAction[] {
  const found = new Map(actionsIn(events).map((action) => [action.id, action]));
  const older = listed
    .filter(({ id }) => !found.has(id))
    .map(({ id, wallet_id: walletId, type: family, status, created_at_ms: beganMs }) => ({
      ...{ id, walletId, family, status, beganMs },
      changes: 0,
    }));
  return [...found.values(), ...older].sort((a, b) => b.beganMs - a.beganMs);
}

/** Whether the status means that an action or a step has failed. */
export function isUnsuccessful(status: string): boolean {
  return ['rejected', 'failed', 'reverted', 'abandoned'].includes(status);
}

/** A step of an action as text, such as `evm transaction on eip155:8453: confirmed, 0x0f…`. */
export function stepText(step: WalletActionStep): string {
  const values = step as Readonly<Record<string, unknown>>;
  const place = values.caip2 ?? values.custodian;
  const hash =
    values.transaction_hash ??
    values.transaction_signature ??
    values.transaction_id ??
    values.bundle_transaction_hash;
  return [
    `${step.type.replaceAll('_', ' ')}${typeof place === 'string' ? ` on ${place}` : ''}`,
    `: ${step.status.replaceAll('_', ' ')}`,
    ...(typeof hash === 'string' ? [`, ${hash}`] : []),
    ...(step.failure_reason === undefined ? [] : [`: ${step.failure_reason.message}`]),
  ].join('');
}
