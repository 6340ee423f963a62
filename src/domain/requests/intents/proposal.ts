import type { OperationId, Operations } from '../../../generated/operations.ts';
import type { IntentType } from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../operation-context.ts';
import type { Planned } from '../../../planned.ts';
import type { AdditionalSigner } from '../../access/owners/require-owner.ts';

/** The resource that a proposed request would change or use, locked until the transaction ends. */
export interface Subject<Row> {
  readonly id: string;
  /** The owning key quorum; null for a resource without an owner. */
  readonly ownerId: string | null;
  readonly row: Row;
}

/** The request itself, with the contract's field names. */
interface ProposedInput<Id extends OperationId> {
  readonly path: Operations[Id]['path'];
  readonly body: Operations[Id]['body'];
}

/** What an intent needs from an operation that can be proposed. */
export interface Proposal<Id extends OperationId, Row> {
  readonly intentType: IntentType;
  /** Throws not_found. */
  hold(context: OperationContext, path: Operations[Id]['path']): Promise<Subject<Row>>;
  /** The path with the resource's own id, whatever name the caller used for it. */
  pathOf(subject: Subject<Row>, path: Operations[Id]['path']): Operations[Id]['path'];
  /** The `resource_id` of the intent; the subject's id when left out. */
  resourceId?(path: Operations[Id]['path']): string;
  /** Who may authorize it besides the owner. */
  signers?(subject: Subject<Row>, input: ProposedInput<Id>): readonly AdditionalSigner[];
  /**
   * Refuses what the operation itself would refuse, as far as that does not depend on the time of execution. Changes
   * nothing.
   */
  check(context: OperationContext, subject: Subject<Row>, input: ProposedInput<Id>): Promise<void> | void;
  /** The resource before the change, in wire form. */
  priorState?(
    context: OperationContext,
    subject: Subject<Row>,
    path: Operations[Id]['path'],
  ): unknown | Promise<unknown>;
  /** The operation has no preparation; one that has is a `PreparedProposal`. */
  readonly prepare?: never;
  /**
   * The id of the wallet action that the execution started, read from its response; the action's outcome settles the
   * intent.
   */
  actionOf?(answer: Operations[Id]['response']): string;
  /** Calls the operation's own verb and returns its response. */
  run(context: OperationContext, input: ProposedInput<Id>): Promise<Operations[Id]['response']>;
}

/** What an intent needs from an operation with a preparation. */
export interface PreparedProposal<Id extends OperationId, Row, Found>
  extends Omit<Proposal<Id, Row>, 'prepare' | 'run'> {
  /** The operation's own preparation. */
  prepare(context: PlanContext, input: ProposedInput<Id>): Promise<Found>;
  /** Calls the operation's own verb and returns its response. */
  run(
    context: OperationContext,
    input: ProposedInput<Id>,
    planned: Planned<Found>,
  ): Promise<Operations[Id]['response']>;
}
