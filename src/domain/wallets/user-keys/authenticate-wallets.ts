import { invalidField, notFound } from '../../../errors.ts';
import type {
  AuthenticateWalletIntentsRequest,
  AuthenticateWalletsRequest,
  WalletAuthenticateIntentsResponse,
  WalletAuthenticateWithJwtResponse,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { type Planned, unwrapPlan } from '../../../planned.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import type { Tables } from '../../tables.ts';
import { walletView } from '../wallets/wallet-view.ts';
import type { AuthenticatedUser } from './authenticate-user.ts';
import { createUserKey } from './create-user-key.ts';
import { handOverKey } from './hand-over-key.ts';
import { listUserQuorumIds, listUserWallets, listWalletsOfQuorums } from './list-user-wallets.ts';

// HOT: reads `intents`, which Kysely writes; no bench case covers it.

export interface AuthenticateInput<Body> {
  readonly body: Body;
  /** The user whom the token of the body names, from `authenticateUser`. */
  readonly planned: Planned<AuthenticatedUser>;
}

/**
 * Exchanges a user's token for a key that signs for the user for an hour, and lists the user's wallets.
 *
 * @throws ApiError missing_or_invalid_token, invalid_data, failed_to_fetch_jwks_uri_document, and not_found when the
 * user does not exist or is a member of no key quorum.
 */
export async function authenticateWallets(
  context: OperationContext,
  { body, planned }: AuthenticateInput<AuthenticateWalletsRequest>,
): Promise<WalletAuthenticateWithJwtResponse> {
  const { userId, sessionId } = unwrapPlan(planned);
  const quorumIds = await listUserQuorumIds(context, userId);
  // CHOICE: the status 404; the specification only says that it is refused. A member of a key quorum that owns no
  // wallet gets a key, because policies and other resources also have owners.
  if (quorumIds.length === 0) throw notFound('Wallet');
  const wallets = await listWalletsOfQuorums(context, quorumIds);
  const recipientPublicKey = recipientOf(body);
  const key = await createUserKey(context, {
    userId,
    sessionId,
    recipientPublicKey,
    ...loginOf(body, sessionId),
  });
  return { ...handOverKey(key), expires_at: key.expiresAtMs, wallets: wallets.map(walletView) };
}

/**
 * The same for a key that can authorize only the named intents. Users without wallets get one too, because policies
 * and key quorums also have owners.
 *
 * @throws ApiError missing_or_invalid_token, invalid_data also for an intent that does not exist,
 * failed_to_fetch_jwks_uri_document, not_found
 */
export async function authenticateWalletIntents(
  context: OperationContext,
  { body, planned }: AuthenticateInput<AuthenticateWalletIntentsRequest>,
): Promise<WalletAuthenticateIntentsResponse> {
  const { userId, sessionId } = unwrapPlan(planned);
  const wallets = await listUserWallets(context, userId);
  const intentIds = body.bindings.map((binding) => binding.intentId);
  await requireIntents(context, intentIds);
  const recipientPublicKey = recipientOf(body);
  const key = await createUserKey(context, {
    ...{ userId, sessionId, intentIds, recipientPublicKey },
    ...loginOf(body, sessionId),
  });
  return {
    ...handOverKey(key),
    bindings: body.bindings,
    expires_at: key.expiresAtMs,
    wallets: wallets.map(walletView),
  };
}

async function requireIntents({ app, em }: OperationContext, ids: readonly string[]): Promise<void> {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('intents')
    .select('id')
    .where('app_id', '=', app.id)
    .where('id', 'in', ids.map(lookupKey))
    .execute();
  const known = new Set(rows.map((row) => row.id));
  const missing = ids.findIndex((id) => !known.has(id));
  if (missing !== -1) throw invalidField(`/bindings/${missing}/intentId`, 'no such intent in this app');
}

/** The app's own tokens have no session. */
function loginOf({ user_jwt: token }: { user_jwt: string }, sessionId: string | undefined) {
  return sessionId === undefined ? { loginToken: token } : {};
}

function recipientOf(body: object): string | undefined {
  return 'recipient_public_key' in body ? (body.recipient_public_key as string) : undefined;
}
