import type { PinnedUsers, StoredVoucherKey } from '../../../engine/authorization/user-vouchers.ts';
import type { OperationContext, Services } from '../../../ports/operation-context.ts';
import { sentSeal, voucherKeyBinding } from '../../base/sealed-keys/sealed-keys.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import { LinkedAccountEntity } from '../user-records/user.entity.ts';

// KYSELY: an insertion that tolerates the same row from another server, and a change of `user_keys`, whose entity
// belongs to a higher layer.

type Context = Pick<OperationContext, 'app' | 'em'> & {
  readonly keyStore: Pick<Services['keyStore'], 'loginApps'>;
};

interface NamedVoucherKey extends StoredVoucherKey {
  readonly name: string;
}

interface VoucherRow {
  readonly id: string;
  readonly name: string;
  readonly sealed_secret: Uint8Array;
  readonly wrapped_data_key: Uint8Array;
  readonly master_key_id: string;
}

const selectKey = prepareQuery<{ appId: string }, VoucherRow>((database, { appId }) =>
  database
    .selectFrom('voucher_keys')
    .select(['id', 'name', 'sealed_secret', 'wrapped_data_key', 'master_key_id'])
    .where('app_id', '=', appId),
);

/** Returns the app's voucher key, or undefined if the app has none. */
export async function findVoucherKey({
  app,
  em,
}: Pick<Context, 'app' | 'em'>): Promise<NamedVoucherKey | undefined> {
  const {
    rows: [row],
  } = await selectKey(em, { appId: app.id });
  if (row === undefined) return undefined;
  const { id, name, sealed_secret: secret, wrapped_data_key: dataKey, master_key_id: masterKeyId } = row;
  const seal = sentSeal({ sealedSecret: secret, wrappedDataKey: dataKey, masterKeyId });
  return { id, name, seal };
}

/**
 * Returns the pins by which the key store recognizes these users as members of a new key quorum. Returns undefined if
 * there are no users, if the key store does not verify the app's login, or if one of the users has no account in it.
 * The key store then has to trust the server about the users' keys.
 */
export async function pinUsers(
  context: Context,
  userIds: readonly string[],
): Promise<PinnedUsers | undefined> {
  const { app, keyStore } = context;
  if (userIds.length === 0 || keyStore.loginApps?.includes(app.id) !== true) return undefined;
  const key = await findVoucherKey(context);
  if (key === undefined) return undefined;
  const subjects = await subjectsOf(context, userIds);
  return userIds.every((id) => Object.hasOwn(subjects, id)) ? { voucher: key.name, subjects } : undefined;
}

/** Maps user ids to the users' ids in the app's login. Users without a readable id there are left out. */
export async function subjectsOf(
  { app, em }: Pick<Context, 'app' | 'em'>,
  userIds: readonly string[],
): Promise<PinnedUsers['subjects']> {
  if (userIds.length === 0) return {};
  const accounts = await em.find(
    LinkedAccountEntity,
    { appId: app.id, userId: { $in: userIds }, type: 'custom_auth' },
    { fields: ['userId', 'subject'], disableIdentityMap: true },
  );
  // An id that is too long for an index is stored as a digest (`lookupKey`), so it cannot be read back.
  const readable = accounts.filter(({ subject }) => !subject.startsWith('sha256:'));
  return Object.fromEntries(readable.map(({ userId, subject }) => [userId, subject]));
}

/**
 * Creates the voucher keys of the apps whose logins the key store verifies. Run it when a server starts.
 *
 * @returns the ids of those apps that do not exist.
 */
export async function makeVoucherKeys({
  em,
  ids,
  keyStore,
}: Pick<OperationContext, 'em' | 'ids' | 'keyStore'>): Promise<string[]> {
  const unknown: string[] = [];
  const database = em.getKysely<Tables>();
  for (const appId of keyStore.loginApps ?? []) {
    const app = await database.selectFrom('apps').select('id').where('id', '=', appId).executeTakeFirst();
    if (app === undefined) unknown.push(appId);
    if (app === undefined || (await findVoucherKey({ app, em })) !== undefined) continue;
    const id = ids.cuid2();
    const { sealed, name } = await keyStore.createVoucherKey(voucherKeyBinding({ id, app_id: appId }));
    await database
      .insertInto('voucher_keys')
      .values({
        ...{ id, app_id: appId, name },
        sealed_secret: Buffer.from(sealed.sealedSecret),
        wrapped_data_key: Buffer.from(sealed.wrappedDataKey),
        master_key_id: sealed.masterKeyId,
      })
      // Another server may be creating the key at the same time.
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    // Vouchers of an earlier voucher key are useless, because that key no longer exists. No key quorum pins it.
    await database.updateTable('user_keys').set({ voucher: null }).where('app_id', '=', appId).execute();
  }
  return unknown;
}
