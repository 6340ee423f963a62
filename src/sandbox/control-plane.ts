import type { SqlEntityManager } from '@mikro-orm/sql';
import type { DeskContext } from '../domain/requests/policy-desk/policy-desk.ts';
import type { Clock } from '../ports/clock.ts';
import type { Entropy } from '../ports/entropy.ts';
import type { Ids } from '../ports/ids.ts';
import type { JwksSource } from '../ports/jwks.ts';
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

/** The contract's events. Payloads are in the contract's words unless said otherwise. */
export interface EventContract {
  types(): Promise<readonly string[]>;
  /** A type, or a pattern of types, out of the words of the brand. */
  readType(type: string): string;
  /** What to say about a type, or a pattern of types, that is none. */
  unknownType(type: string): Promise<string>;
  /** The contract's own example, in the words of the brand. */
  example(type: string): Promise<unknown>;
  /** A payload out of the words of the brand. */
  read(payload: unknown): unknown;
  /** A stored payload in the words of the brand, as it is delivered. */
  write(payload: string): unknown;
  /** Where a payload breaks the contract, if it does. */
  fault(type: string, payload: unknown): Promise<{ pointer: string; message: string } | undefined>;
}

/** Answers questions about policies. */
export interface PolicyDesk {
  /** Everything that was recorded before is there to be read. */
  readonly atDesk: <T>(work: (context: DeskContext) => Promise<T>) => Promise<T>;
}

/** What is given out of nothing. */
export interface ChainDeposit {
  readonly address: string;
  readonly tokenAddress: string | null;
  readonly rawAmount: bigint;
  /** Of a token never heard of. */
  readonly decimals?: number | undefined;
  readonly symbol?: string | undefined;
}

/** The simulated chains, from outside. Only those that `has` knows may be named. */
export interface MovableChains {
  has(caip2: string): boolean;
  /** Undefined: a token never heard of. Null is the native asset. */
  decimalsOf(caip2: string, tokenAddress: string | null): Promise<number | undefined>;
  /** The fault names the member of the deposit that the chain cannot take. */
  fund(
    caip2: string,
    deposit: ChainDeposit,
  ): Promise<
    | { readonly hash: string; readonly rawBalance: bigint; readonly blockNumber: bigint }
    | { readonly fault: 'address' | 'tokenAddress' | 'rawAmount'; readonly message: string }
  >;
  /** The newest block of each chain; undefined names every chain that was used. */
  mine(caip2: string | undefined, count: number): Promise<ReadonlyMap<string, bigint>>;
}

/** What a caller of the control plane can reach. */
export interface ControlContext extends PolicyDesk {
  /** The app that the sandbox began with. */
  readonly appId: string;
  readonly events: EventContract;
  /** Names the log of events; a new name means that all that was in it is gone. */
  eventLog(): string;
  /** Aborted when the caller has gone or the server stops: an answer must not be held back any longer. */
  readonly signal: AbortSignal;
  readonly clock: MovableClock;
  readonly entropy: Entropy;
  readonly ids: Ids;
  readonly jwks: JwksSource;
  readonly chains: MovableChains;
  /** Empties the state and makes the seeds again, the clock and a seeded entropy included. */
  reset(): Promise<void>;
  /** Does everything that is due at the present of the clock. */
  settle(): Promise<void>;
  read<T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T>;
  /** In one transaction. */
  change<T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T>;
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

/** A handler that needs no more of the context than the desk, which production has too. */
export type DeskHandler<Id extends OperationId> = (
  input: ControlInput<Id>,
  desk: PolicyDesk,
) => Promise<Operations[Id]['response']>;

/** The handler file of every operation. */
export type Handlers<_Files> = { readonly [Id in OperationId]: { readonly run: Handler<Id> } };

interface AnyHandlerFile {
  run(input: { path: unknown; query: unknown; body: unknown }, context: ControlContext): Promise<unknown>;
}

/** Runs the operation with the id `operationId`, which the control plane's own contract knows. */
export function runControlOperation(
  operationId: string,
  input: { path: unknown; query: unknown; body: unknown },
  context: ControlContext,
): Promise<unknown> {
  // Each handler fits the validators of its own operation, as the compiler has checked in the registry.
  return (registry as unknown as Record<string, AnyHandlerFile>)[operationId]!.run(input, context);
}
