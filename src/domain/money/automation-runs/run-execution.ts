import type { SqlEntityManager } from '@mikro-orm/sql';
import { countQuorum, type Quorum, quorumKeys } from '../../../engine/authorization/quorum.ts';
import { UnauthorizedUseError } from '../../../engine/authorization/signed-evidence.ts';
import { ApiError } from '../../../errors.ts';
import { type Pass, RunAgainError, runInPasses } from '../../../keys/passes.ts';
import type {
  AfterCommitWork,
  OperationContext,
  PlanContext,
  RequestProof,
  Services,
  UnitWork,
} from '../../../ports/operation-context.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { ExecutionEntity, type StoredExecution } from '../../access/automations/automation.entity.ts';
import { loadQuorums } from '../../access/owners/owner-quorums.ts';
import { UserEntity } from '../../access/user-records/user.entity.ts';
import { recordEvent } from '../../base/events/events.ts';
import { originOf } from '../../wallets/wallet-automations/trigger-automations.ts';
import { WalletEntity } from '../../wallets/wallets/wallet.entity.ts';
import { dropExecution, findSweep, moveExecution, putOffExecution } from './executions.ts';
import { budgetRefusal, planSweep, type Sweep, shareRefusal } from './sweep.ts';

/** CHOICE: the pause before an execution is retried. */
const RETRY_PAUSE_MS = 5000;

/** The parts of a job's context that are needed to run an execution. */
export interface RunContext {
  readonly services: Services;
  readonly inUnit: OperationContext['inUnit'];
  /** Reads outside any transaction. */
  readonly em: SqlEntityManager;
  /** Reports that the chain of an execution, or a service for it, could not be reached. */
  readonly report: (caip2: string, err: unknown) => void;
}

/**
 * Runs one execution: sweeps the wallet's whole balance of the asset with the same verb that a request for a swap, a
 * transfer or an earn deposit calls. The consent that the owner gave by attaching the automation replaces the owner's
 * authorization. Policies are evaluated now, as they are for a request of the owner.
 *
 * INVARIANT: the action, the execution's status and the event are committed together. A crash leaves all or none of
 * them, and nothing is swept twice.
 */
export async function runExecution(context: RunContext, execution: StoredExecution): Promise<void> {
  const { services, inUnit, report } = context;
  try {
    const origin = await originOf(context, execution);
    if (origin === 'unknown') {
      return await inUnit((em) => putOffExecution(em, execution.id, services.clock.now() + RETRY_PAUSE_MS));
    }
    if (origin === 'own') return await inUnit((em) => dropExecution(em, execution.id));
    const wallet = await requireConsent(context.em, execution);
    const planning = planContext(context, execution);
    const sweep = await planSweep(planning, execution, wallet.address);
    if (sweep === undefined) return void (await skip(context, execution));
    const reason = sweep.spending && (await shareRefusal(planning, wallet.address, sweep.spending));
    if (reason !== undefined) {
      await end(context, execution, { status: 'skipped', sweptById: null, reason });
    } else await submit(context, execution, sweep);
  } catch (error) {
    const nowMs = services.clock.now();
    const isFinal =
      error instanceof UnauthorizedUseError || (error instanceof ApiError && !passing.has(error.code));
    if (!isFinal && nowMs < (execution.retryUntilMs ?? 0)) {
      report(execution.caip2, error);
      await inUnit((em) => putOffExecution(em, execution.id, nowMs + RETRY_PAUSE_MS));
      return;
    }
    if (!isFinal && !(error instanceof ApiError)) {
      services.log.error({ err: error, execution: execution.id }, 'an automation failed');
    }
    await end(context, execution, { status: 'failed', reason: reasonOf(error) });
  }
}

/** The error codes after which the execution is retried, because they may be temporary. */
const passing: ReadonlySet<string> = new Set([
  'unavailable',
  'transaction_broadcast_failure',
  'internal_error',
  'resource_conflict',
]);

function reasonOf(error: unknown): string {
  if (error instanceof ApiError) return error.message;
  // The signer rejects the consent once the owner has changed, even if the wallet later returns to that owner.
  if (error instanceof UnauthorizedUseError) return 'the owner of the wallet changed after the deposit';
  return 'the chain or the service that swaps could not be reached';
}

function end(
  { services, inUnit }: RunContext,
  { id }: StoredExecution,
  change: Parameters<typeof moveExecution>[2]['change'],
): Promise<boolean> {
  return inUnit((em) => moveExecution(em, id, { change, nowMs: services.clock.now() }));
}

/** Ends an execution without an action, because another execution swept the deposit or the owner spent it. */
function skip({ services, inUnit }: RunContext, execution: StoredExecution): Promise<boolean> {
  return inUnit(async (em) => {
    const change = { status: 'skipped', sweptById: await findSweep(em, execution) } as const;
    return moveExecution(em, execution.id, { change, nowMs: services.clock.now() });
  });
}

function submit(context: RunContext, execution: StoredExecution, sweep: Sweep): Promise<void> {
  return runInPasses(context.services, (pass) => submitIn(pass, context, { execution, sweep }));
}

async function submitIn(
  pass: Pass,
  context: RunContext,
  { execution, sweep }: { readonly execution: StoredExecution; readonly sweep: Sweep },
): Promise<void> {
  const { services, inUnit } = context;
  const later: AfterCommitWork[] = [];
  const refusalWorks: UnitWork<void>[] = [];
  try {
    await inUnit(async (em, notes) => {
      const stored = await em.findOne(ExecutionEntity, { id: execution.id }, lockForUpdate);
      if (stored?.status !== 'pending') return;
      await requireConsent(em, stored, true);
      if (await isSweeping(em, stored)) {
        return await putOffExecution(em, stored.id, services.clock.now() + RETRY_PAUSE_MS);
      }
      const operation: OperationContext = {
        ...planContext({ ...context, em }, stored),
        ...pass.portsFor(em),
        notes,
        afterCommit: (work) => void later.push(work),
        afterRefusal: (work) => void refusalWorks.push(work),
        noteSignatures: () => undefined,
        inUnit,
      };
      const { spending } = sweep;
      const reason = spending && (await budgetRefusal(operation, stored.walletId, spending));
      if (reason !== undefined) {
        const change = { status: 'skipped', sweptById: null, reason } as const;
        return void (await moveExecution(em, stored.id, { change, nowMs: operation.nowMs }));
      }
      const action = await sweep.run(operation);
      await submitted(operation, stored, { actionId: action.id, gasCost: spending?.cost });
      if (pass.mustRunAgain()) throw new RunAgainError();
    });
    pass.hasCommitted();
  } catch (error) {
    if (pass.mustRunAgain()) throw error;
    // Store records that must survive the rollback, such as the trace of a denial.
    await inUnit(async (em, notes) => {
      for (const work of refusalWorks) await work(em, notes);
    });
    throw error;
  }
  for (const work of later) {
    // The transactions are already stored. If this broadcast fails, the job that follows them broadcasts them again.
    await work()?.catch((err: unknown) =>
      services.log.warn({ err, execution: execution.id }, 'broadcast failed; will retry'),
    );
  }
}

/** Returns whether another execution is sweeping the same asset. Call it with the wallet locked. */
async function isSweeping(
  em: SqlEntityManager,
  { walletId, caip2, assetAddress }: StoredExecution,
): Promise<boolean> {
  const open = { walletId, caip2, assetAddress, status: 'submitted' };
  return (await em.count(ExecutionEntity, open)) > 0;
}

async function submitted(
  context: OperationContext,
  { id, appId, walletId, automationId, caip2, assetAddress, createdAtMs }: StoredExecution,
  { actionId, gasCost }: { readonly actionId: string; readonly gasCost: bigint | undefined },
): Promise<void> {
  const { em, nowMs } = context;
  const change = {
    status: 'submitted',
    actionId,
    gasCost: gasCost === undefined ? null : String(gasCost),
  } as const;
  await moveExecution(em, id, { change, nowMs });
  await recordEvent(context, {
    appId,
    type: 'wallet_automation.submitted',
    payload: {
      automation_id: automationId,
      action_id: actionId,
      wallet_id: walletId,
      trigger_id: id,
      trigger_caip2: caip2,
      trigger_asset_address: assetAddress,
      created_at: new Date(createdAtMs).toISOString(),
    },
  });
}

/**
 * Returns the wallet, if the owner who gave the consent still owns it and only this server can use its key.
 *
 * @param isLocked whether to lock the wallet until the transaction ends.
 * @throws ApiError invalid_state
 */
async function requireConsent(
  em: SqlEntityManager,
  { appId, walletId, agreedById, destinationWalletId }: StoredExecution,
  isLocked = false,
): Promise<{ readonly address: string }> {
  const wallet = await em.findOne(
    WalletEntity,
    { id: walletId },
    { disableIdentityMap: true, ...(isLocked ? lockForUpdate : {}) },
  );
  if (wallet === null || wallet.archivedAtMs !== null) {
    throw new ApiError('invalid_state', 'the wallet was archived after the deposit');
  }
  if (wallet.exportedAtMs !== null) {
    throw new ApiError('invalid_state', 'the wallet was exported after the deposit');
  }
  if (wallet.ownerId !== agreedById) {
    throw new ApiError('invalid_state', 'the owner of the wallet changed after the deposit');
  }
  await requireOwnerWhoCanSign(em, appId, agreedById);
  if (destinationWalletId !== null) await requireDestination(em, destinationWalletId, agreedById);
  return wallet;
}

/**
 * Requires that the owner could still sign.
 *
 * CHOICE: a frozen user cannot sign. A consent that the user gave in advance does not count either, unless the other
 * members of the owner reach the threshold without the user. The deposit then stays in the wallet.
 *
 * @throws ApiError invalid_state
 */
async function requireOwnerWhoCanSign(
  em: SqlEntityManager,
  appId: string,
  ownerId: string | null,
): Promise<void> {
  if (ownerId === null) return;
  const context = { em, app: { id: appId }, nowMs: 0 };
  const quorum = (await loadQuorums(context, [ownerId])).get(ownerId);
  const userIds = quorum === undefined ? [] : usersOf(quorum);
  if (quorum === undefined || userIds.length === 0) return;
  const free = await em.find(
    UserEntity,
    { appId, id: { $in: userIds }, frozenAtMs: null },
    { fields: ['id'] },
  );
  const able = withUsers(quorum, new Set(free.map(({ id }) => id)));
  if (countQuorum(able, new Set(quorumKeys(able))).satisfied) return;
  throw new ApiError('invalid_state', 'the users who own the wallet are frozen or were deleted');
}

function usersOf({ users, quorums }: Quorum): string[] {
  return [...users.map(({ userId }) => userId), ...quorums.flatMap(usersOf)];
}

/** Returns the key quorum as if each of these users had a key and other users had none. */
function withUsers(quorum: Quorum, able: ReadonlySet<string>): Quorum {
  return {
    ...quorum,
    users: quorum.users.map(({ userId }) => ({
      userId,
      liveKeys: able.has(userId) ? [`user:${userId}`] : [],
    })),
    quorums: quorum.quorums.map((inner) => withUsers(inner, able)),
  };
}

/**
 * Requires that the wallet that receives the deposit still exists, is not archived and has the same owner.
 *
 * @throws ApiError invalid_state
 */
async function requireDestination(
  em: SqlEntityManager,
  walletId: string,
  agreedById: string | null,
): Promise<void> {
  const wallet = await em.findOne(WalletEntity, { id: walletId }, { disableIdentityMap: true });
  if (wallet?.archivedAtMs === null && wallet.ownerId === agreedById) return;
  throw new ApiError(
    'invalid_state',
    'the wallet that the deposit is for was archived or given to another owner after the deposit',
  );
}

function planContext({ services, em }: RunContext, execution: StoredExecution): PlanContext {
  return {
    ...services,
    app: { id: execution.appId },
    em,
    nowMs: services.clock.now(),
    requestId: execution.id,
    proof: standingProof(execution),
  };
}

/** Returns the proof of a request to which the owner consented by attaching the automation. */
function standingProof({ agreedById }: StoredExecution): RequestProof {
  return {
    signatures: [],
    canonicalPayloads: () => [],
    expiryMs: undefined,
    userId: undefined,
    urlOf: (path) => path,
    payloadsOf: () => [],
    consentOf: agreedById,
  };
}
