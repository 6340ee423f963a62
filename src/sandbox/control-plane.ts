import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Clock, Entropy, Ids, JwksSource } from '../services.ts';
import type { OperationId, Operations } from './generated/operations.ts';
import { registry } from './generated/registry.ts';

/** A clock that can be stopped and moved. Unix milliseconds. */
export interface MovableClock extends Clock {
  readonly isFrozen: boolean;
  set(nowMs: number): void;
  advance(durationMs: number): void;
  freeze(): void;
  resume(): void;
}

/** What a caller of the control plane can reach. */
export interface ControlContext {
  readonly clock: MovableClock;
  readonly entropy: Entropy;
  readonly ids: Ids;
  readonly jwks: JwksSource;
  /** Empties the state and makes the seeds again, the clock and a seeded entropy included. */
  reset(): Promise<void>;
  /** Does everything that is due at the present of the clock. */
  settle(): Promise<void>;
  read<T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T>;
  /** In one transaction, after which nothing cached about apps is believed. */
  changeApps<T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T>;
}

/** Path, query and body of one operation of the control plane, validated against its contract. */
export interface ControlInput<Id extends OperationId> {
  readonly path: Operations[Id]['path'];
  readonly query: Operations[Id]['query'];
  readonly body: Operations[Id]['body'];
}

export type Handler<Id extends OperationId> = (
  input: ControlInput<Id>,
  context: ControlContext,
) => Promise<Operations[Id]['response']>;

type AnyHandler = (
  input: { path: unknown; query: unknown; body: unknown },
  context: ControlContext,
) => Promise<unknown>;

/** Runs the operation with the id `operationId`, which the control plane's own contract knows. */
export function runControlOperation(
  operationId: string,
  input: { path: unknown; query: unknown; body: unknown },
  context: ControlContext,
): Promise<unknown> {
  // Each handler fits the validators of its own operation, as the compiler has checked in the registry.
  return (registry as unknown as Record<string, AnyHandler>)[operationId]!(input, context);
}
