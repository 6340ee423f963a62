import { hash } from 'node:crypto';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { ApiError, StaleReadError } from '../../../errors.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { Safeguards, SignedRequest, SingleUse, StoredResponse } from '../../../ports/requests.ts';
import type { Tables } from '../../tables.ts';
import { requireSigners } from '../idempotency/idempotency-keys.ts';
import { readSafeguards } from '../safeguards/safeguards.ts';
import { UsedSignatureEntity } from './used-signature.entity.ts';

// KYSELY: upserts that report which request was first.

/** The maximum difference between the clocks of two processes. */
const CLOCK_SKEW_MS = 5 * 60_000;

/**
 * Returns the implementation of the safeguard `single_use_signatures`: each signed payload of an app is accepted only
 * once. A repeated request gets the first response, so clients can retry.
 *
 * CHOICE: a payload without an expiry is stored forever, because its signatures stay valid until the owner changes. A
 * refused request does not use up its payload, because nothing was done.
 */
export function singleUseSignatures(defaults: Safeguards): SingleUse {
  return {
    async begin({ em, notes }, request) {
      const { single_use_signatures: isRequired } = await readSafeguards({
        app: { id: request.appId },
        em,
        notes,
        safeguards: defaults,
      });
      if (!isRequired) return { isRequired };
      const first = await findFirst(em, request);
      if (first !== undefined) await requireSigners(request.proof, first.signers);
      return { isRequired, first };
    },
    async keep(em, { appId, proof }, { payloads, answer }) {
      for (const payload of payloads) {
        const row = { digest: digestOf(payload), intent_id: null, ...columnsOf(answer) };
        const owner = await claim(em, { app_id: appId, ...row, expires_at_ms: proof.expiryMs ?? null });
        if (owner === 'mine') continue;
        if (owner === 'intent') throw alreadyUsed();
        throw new StaleReadError('a concurrent request has used the same signed payload');
      }
    },
    async replace(em, { appId }, { payloads, answer }) {
      const used = { appId, digest: { $in: payloads.map(digestOf) } };
      await em.nativeUpdate(UsedSignatureEntity, used, columnsOf(answer));
    },
  };
}

/** A payload that a member of an intent's key quorum has signed. */
export interface IntentPayload {
  readonly intentId: string;
  readonly payload: Uint8Array;
  /** The request expiry that the payload contains, Unix ms; undefined if it contains none. */
  readonly expiryMs: number | undefined;
}

/**
 * Marks a signed payload as used by an intent, if the app's safeguards require single use. No direct request and no
 * other intent can then use it. Other members may sign the same payload for the same intent.
 *
 * @throws ApiError zero_correct_authorization_signatures if a request or another intent has used the payload.
 */
export async function useForIntent(
  context: Pick<OperationContext, 'app' | 'em' | 'notes' | 'safeguards'>,
  { intentId, payload, expiryMs }: IntentPayload,
): Promise<void> {
  if (!(await readSafeguards(context)).single_use_signatures) return;
  const owner = await claim(context.em, {
    app_id: context.app.id,
    digest: digestOf(payload),
    intent_id: intentId,
    status: null,
    answer: null,
    signers: null,
    expires_at_ms: expiryMs ?? null,
  });
  if (owner !== 'mine') throw alreadyUsed();
}

/** Deletes up to `limit` payloads that have expired, and returns how many. */
export async function dropExpiredSignatures(
  em: SqlEntityManager,
  nowMs: number,
  limit: number,
): Promise<number> {
  const { numDeletedRows } = await em
    .getKysely<Tables>()
    .deleteFrom('used_signatures')
    .where(({ eb, refTuple, selectFrom }) =>
      eb(
        refTuple('app_id', 'digest'),
        'in',
        selectFrom('used_signatures')
          .select(['app_id', 'digest'])
          .where('expires_at_ms', '<', nowMs - CLOCK_SKEW_MS)
          .limit(limit)
          .$asTuple('app_id', 'digest'),
      ),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}

async function findFirst(
  em: SqlEntityManager,
  { appId, proof }: SignedRequest,
): Promise<StoredResponse | undefined> {
  const row = await em
    .getKysely<Tables>()
    .selectFrom('used_signatures')
    .select(['status', 'answer', 'signers'])
    .where('app_id', '=', appId)
    .where('digest', 'in', proof.canonicalPayloads().map(digestOf))
    .where('intent_id', 'is', null)
    .executeTakeFirst();
  if (row === undefined || row.status === null) return undefined;
  const signers = JSON.parse(row.signers ?? '[]') as string[];
  return { status: row.status, text: row.answer ?? undefined, signers };
}

interface Row {
  readonly app_id: string;
  readonly digest: string;
  readonly intent_id: string | null;
  readonly status: number | null;
  readonly answer: string | null;
  readonly signers: string | null;
  readonly expires_at_ms: number | null;
}

/**
 * Inserts the row unless the payload was used before. Returns who used it: `mine` (this request, or the same intent),
 * another `request`, or another `intent`.
 */
async function claim(em: SqlEntityManager, row: Row): Promise<'mine' | 'request' | 'intent'> {
  const database = em.getKysely<Tables>();
  const { numInsertedOrUpdatedRows } = await database
    .insertInto('used_signatures')
    .values(row)
    .onConflict((conflict) => conflict.columns(['app_id', 'digest']).doNothing())
    .executeTakeFirstOrThrow();
  if (numInsertedOrUpdatedRows === 1n) return 'mine';
  const other = await database
    .selectFrom('used_signatures')
    .select('intent_id')
    .where('app_id', '=', row.app_id)
    .where('digest', '=', row.digest)
    .executeTakeFirst();
  if (other === undefined || other.intent_id === null) return 'request';
  return other.intent_id === row.intent_id ? 'mine' : 'intent';
}

function columnsOf({ status, text, signers }: StoredResponse) {
  return { status, answer: text ?? null, signers: JSON.stringify(signers) };
}

// SHA-256(canonical payload)
function digestOf(payload: Uint8Array): string {
  return hash('sha256', payload, 'base64');
}

function alreadyUsed(): ApiError {
  return new ApiError(
    'zero_correct_authorization_signatures',
    'the signature was used before, and this app accepts each signed request once',
  );
}
