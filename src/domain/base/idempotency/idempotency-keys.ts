import type { SqlEntityManager } from '@mikro-orm/sql';
import { verifySignatures } from '../../../engine/authorization/request-signatures.ts';
import { inSlices } from '../../../engine/in-slices.ts';
import { ApiError } from '../../../errors.ts';
import type { Idempotency, IdempotentRequest, StoredResponse } from '../../../ports/requests.ts';
import { tryLockName } from '../../../storage/locks.ts';
import { prepareQuery } from '../../../storage/prepared-statements.ts';

/**
 * Requires that all these keys signed the request. Whether they still own anything does not matter: a retry gets the
 * first response even if the owner has changed since.
 *
 * @param signers canonical base64 SubjectPublicKeyInfo.
 * @throws ApiError `missing_or_empty_authorization_header`, `incorrect_quantity_of_authorization_signatures`,
 * `zero_correct_authorization_signatures`, `insufficient_correct_authorization_signatures`.
 */
export async function requireSigners(
  { signatures, canonicalPayloads }: IdempotentRequest['proof'],
  signers: readonly string[],
): Promise<void> {
  if (signers.length === 0) return;
  if (signatures.length === 0) throw new ApiError('missing_or_empty_authorization_header');
  if (signatures.length < signers.length)
    throw new ApiError('incorrect_quantity_of_authorization_signatures');
  const payloads = canonicalPayloads();
  const isEnough = (verified: ReadonlySet<string>) => verified.size === signers.length;
  const { keys } = await inSlices(verifySignatures({ signatures, payloads, keys: signers, isEnough }));
  if (keys.size === 0) throw new ApiError('zero_correct_authorization_signatures');
  if (!isEnough(keys)) throw new ApiError('insufficient_correct_authorization_signatures');
}

// KYSELY: an upsert with a condition, and bounded deletions by subquery.

/** The columns that this file uses. */
interface Tables {
  idempotency_records: {
    app_id: string;
    key: string;
    fingerprint: string;
    status: number;
    answer: string | null;
    signers: string | null;
    created_at_ms: number;
  };
}

const LIFETIME_MS = 24 * 60 * 60 * 1000;

/**
 * Returns the store of responses by idempotency key. Repeated requests with the same key get the first response for 24
 * hours.
 *
 * A response to a request that signatures authorized is returned only to requests signed by the same keys. It may
 * contain a signature or a key of a wallet, which the app secret alone must not give.
 *
 * A second request that arrives while the first is in progress is refused; it does not wait. Within one process a map
 * detects it, and between processes a lock that the transaction holds.
 *
 * `begin` throws an ApiError `invalid_data` with the messages that published clients match, and what `requireSigners`
 * throws.
 */
export function idempotencyKeys(): Idempotency {
  const atWork = new Map<string, IdempotentRequest>();
  return {
    async begin(em, request) {
      const name = nameOf(request);
      // Each attempt at a request passes the same object.
      if ((atWork.get(name) ?? request) !== request) throw stillAtWork();
      atWork.set(name, request);
      try {
        if (!(await tryLockName(em, 'idempotency', name))) throw stillAtWork();
        const kept = await findKept(em, request);
        if (kept !== undefined) await requireSigners(request.proof, kept.signers);
        if (kept !== undefined) atWork.delete(name);
        return kept;
      } catch (error) {
        atWork.delete(name);
        throw error;
      }
    },
    keep,
    end: (request) => {
      if (atWork.get(nameOf(request)) === request) atWork.delete(nameOf(request));
    },
  };
}

/** Deletes up to `limit` expired records, and returns how many. */
export async function dropExpiredAnswers(
  em: SqlEntityManager,
  nowMs: number,
  limit: number,
): Promise<number> {
  const { numDeletedRows } = await em
    .getKysely<Tables>()
    .deleteFrom('idempotency_records')
    .where(({ eb, refTuple, selectFrom }) =>
      eb(
        refTuple('app_id', 'key'),
        'in',
        selectFrom('idempotency_records')
          .select(['app_id', 'key'])
          .where('created_at_ms', '<=', nowMs - LIFETIME_MS)
          .limit(limit)
          .$asTuple('app_id', 'key'),
      ),
    )
    // Another process may have replaced the expired record in the meantime.
    .where('created_at_ms', '<=', nowMs - LIFETIME_MS)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

const selectKept = prepareQuery<
  Tables,
  { appId: string; key: string; afterMs: number },
  Pick<Tables['idempotency_records'], 'fingerprint' | 'status' | 'answer' | 'signers'>
>((database, { appId, key, afterMs }) =>
  database
    .selectFrom('idempotency_records')
    .select(['fingerprint', 'status', 'answer', 'signers'])
    .where('app_id', '=', appId)
    .where('key', '=', key)
    .where('created_at_ms', '>', afterMs),
);

async function findKept(
  em: SqlEntityManager,
  request: IdempotentRequest,
): Promise<StoredResponse | undefined> {
  const {
    rows: [record],
  } = await selectKept(em, { appId: request.appId, key: request.key, afterMs: request.nowMs - LIFETIME_MS });
  if (record === undefined) return undefined;
  if (record.fingerprint !== request.fingerprint) {
    throw new ApiError(
      'invalid_data',
      'Idempotency key was reused for a request with a new body. Please create a new idempotency key for the request.',
    );
  }
  const signers = record.signers === null ? [] : (JSON.parse(record.signers) as string[]);
  return { status: record.status, text: record.answer ?? undefined, signers };
}

async function keep(
  em: SqlEntityManager,
  request: IdempotentRequest,
  { status, text, signers }: StoredResponse,
  { replaces } = { replaces: false },
): Promise<void> {
  const kept = {
    fingerprint: request.fingerprint,
    status,
    answer: text ?? null,
    signers: signers.length === 0 ? null : JSON.stringify(signers),
    created_at_ms: request.nowMs,
  };
  await em
    .getKysely<Tables>()
    .insertInto('idempotency_records')
    .values({ app_id: request.appId, key: request.key, ...kept })
    // Replaces an expired record. A refusal is stored after its transaction has released the key, so another process
    // may have completed the request in the meantime. That response stays.
    .onConflict((conflict) => {
      const replaced = conflict.columns(['app_id', 'key']).doUpdateSet(kept);
      return status < 400 || replaces
        ? replaced
        : replaced.where('idempotency_records.created_at_ms', '<=', request.nowMs - LIFETIME_MS);
    })
    .execute();
}

function nameOf({ appId, key }: IdempotentRequest): string {
  return `${appId}\n${key}`;
}

function stillAtWork(): ApiError {
  return new ApiError('invalid_data', 'Previous request with matching idempotency key is still in progress.');
}
