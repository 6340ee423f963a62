import type { Selectable } from 'kysely';
import type { PolicyDecision } from '../../policy/evaluate.ts';
import type { OperationContext } from '../../services.ts';
import type { Tables } from '../../storage/entities.ts';
import { prepareQuery } from '../../storage/prepared-query.ts';

/** A request that asks for the use of a wallet. */
export interface WalletUse {
  /** The operation by its id: `walletRpc`, `rawSignWallet`, `exportWallet`. */
  readonly operation: string;
  /**
   * Its body as given. CHOICE: kept as it stands, in production too: what is signed is personal but no secret, and a
   * draft policy can be judged by nothing less. No body of these operations holds a secret.
   */
  readonly request: object;
}

/** A use and what the policies said of it. */
export interface JudgedUse extends WalletUse {
  readonly id: string;
  readonly walletId: string;
  readonly method: string;
  readonly policyIds: readonly string[];
  /** Of a denial: the decisions that led to it, the denying one last. */
  readonly denial?: readonly PolicyDecision[] | undefined;
}

/** What recording needs of a context. */
export type UseContext = Pick<OperationContext, 'app' | 'em' | 'requestId' | 'nowMs'>;

/** CHOICE: larger bodies and traces are not kept, so that nobody fills the table with a few requests. Characters. */
const MAX_KEPT = 256 * 1024;

type NewUse = Omit<Selectable<Tables['wallet_uses']>, 'sequence'>;

const insertUse = prepareQuery<NewUse>((database, use) =>
  database.insertInto('wallet_uses').values({
    id: use.id,
    app_id: use.app_id,
    wallet_id: use.wallet_id,
    operation: use.operation,
    method: use.method,
    request_id: use.request_id,
    judged_at_ms: use.judged_at_ms,
    decision: use.decision,
    policy_ids: use.policy_ids,
    request: use.request,
    trace: use.trace,
  }),
);

/**
 * Records that a wallet was used, or was not because a policy denied it.
 *
 * CHOICE: a denied request has no event, since none of the contract's 67 tells of one: `wallet_action.*.rejected`
 * names a wallet action, `intent.rejected` an intent, and an rpc request is neither.
 */
export async function recordUse(context: UseContext, use: JudgedUse): Promise<void> {
  await insertUse(context.em, {
    id: use.id,
    app_id: context.app.id,
    wallet_id: use.walletId,
    operation: use.operation,
    method: use.method,
    request_id: context.requestId,
    judged_at_ms: context.nowMs,
    decision: use.denial === undefined ? 'allowed' : 'denied',
    policy_ids: JSON.stringify(use.policyIds),
    request: keptText(use.request),
    trace: use.denial === undefined ? null : keptText(use.denial),
  });
}

function keptText(value: unknown): string | null {
  const text = JSON.stringify(value);
  return text.length > MAX_KEPT ? null : text;
}
