import type { OperationId, Operations } from '../../../generated/operations.ts';
import type { IntentType } from '../../../generated/schemas.ts';
import type { OperationContext, PreparationContext } from '../../../operation-context.ts';
import type { Prepared } from '../../../prepared.ts';
import type { AdditionalSigner } from '../../access/owners/require-owner.ts';

/** The resource that a proposed request would change or use, held until the transaction ends. */
export interface Subject<Row> {
  readonly id: string;
  /** The key quorum that owns it; null when nobody does. */
  readonly ownerId: string | null;
  readonly row: Row;
}

/** The request itself, in the contract's words. */
interface ProposedInput<Id extends OperationId> {
  readonly path: Operations[Id]['path'];
  readonly body: Operations[Id]['body'];
}

/** What an intent needs to know of an operation that can be proposed. */
export interface Proposal<Id extends OperationId, Row> {
  readonly intentType: IntentType;
  /** Throws not_found. */
  hold(context: OperationContext, path: Operations[Id]['path']): Promise<Subject<Row>>;
  /** The path with the resource's own id, whatever name the caller used for it. */
  pathOf(subject: Subject<Row>, path: Operations[Id]['path']): Operations[Id]['path'];
  /** What the intent is said to be about; the subject unless told otherwise. */
  resourceId?(path: Operations[Id]['path']): string;
  /** Who may agree beside the owner. */
  signers?(subject: Subject<Row>, input: ProposedInput<Id>): readonly AdditionalSigner[];
  /**
   * Refuses at once what the operation itself would refuse, as far as that does not depend on when it is carried out.
   * Makes nothing.
   */
  check(context: OperationContext, subject: Subject<Row>, input: ProposedInput<Id>): Promise<void> | void;
  /** The resource as it is before the change, as it is answered. */
  priorState?(
    context: OperationContext,
    subject: Subject<Row>,
    path: Operations[Id]['path'],
  ): unknown | Promise<unknown>;
  /** The operation has no preparation; one that has is a `PreparedProposal`. */
  readonly prepare?: never;
  /**
   * The wallet action that carrying it out has begun, by its answer: it decides how the intent ends.
   */
  actionOf?(answer: Operations[Id]['response']): string;
  /** Does what the operation does, by the same verb, and answers the same. */
  run(context: OperationContext, input: ProposedInput<Id>): Promise<Operations[Id]['response']>;
}

/** What an intent needs to know of an operation that asks something outside before its transaction. */
export interface PreparedProposal<Id extends OperationId, Row, Found>
  extends Omit<Proposal<Id, Row>, 'prepare' | 'run'> {
  /** The operation's own preparation. */
  prepare(context: PreparationContext, input: ProposedInput<Id>): Promise<Found>;
  /** Does what the operation does, by the same verb, and answers the same. */
  run(
    context: OperationContext,
    input: ProposedInput<Id>,
    prepared: Prepared<Found>,
  ): Promise<Operations[Id]['response']>;
}
