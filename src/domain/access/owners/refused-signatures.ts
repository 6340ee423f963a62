import { diagnoseSignatures, type Party } from '../../../authorization/diagnose-signatures.ts';
import type { VerifiedSignatures } from '../../../authorization/request-signatures.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { inSlices } from '../../in-slices.ts';
import type { Tables } from '../../tables.ts';

interface Refused {
  readonly signatures: readonly string[];
  readonly payloads: readonly Uint8Array[];
  readonly verified: VerifiedSignatures;
  readonly parties: readonly Party[];
}

interface SignatureReport {
  reason?: string;
  public_key?: string;
  key_quorum_ids?: string[];
  recovered_keys?: string[];
}

const MAX_KEYS = 50;
const MAX_QUORUMS = 5;

// HOT: joins tables of other nouns, which have no entity here, for a refusal with diagnostics only.

/** `data` of refused signatures: `diagnoseSignatures`, and the key quorums of the app that have a key which signed. */
export async function explainRefused(
  context: OperationContext,
  refused: Refused,
): Promise<Record<string, unknown>> {
  const sentBody = context.proof.sentBody?.();
  const data = await inSlices(diagnoseSignatures({ ...refused, sentBody }));
  const { signatures } = data.signature_check as { readonly signatures: readonly SignatureReport[] };
  const recovered = signatures.flatMap(({ recovered_keys: keys = [] }) => keys).slice(0, MAX_KEYS);
  if (recovered.length === 0) return data;
  const quorums = await quorumsWith(context, recovered);
  const users = await usersWith(context, recovered);
  for (const report of signatures) {
    const key = report.recovered_keys?.find((candidate) => quorums.has(candidate) || users.has(candidate));
    if (key === undefined) continue;
    const found = quorums.get(key) ?? [];
    const user = users.get(key);
    const names = found.map(({ id, displayName }) =>
      displayName === null ? `\`${id}\`` : `\`${id}\` (${displayName})`,
    );
    delete report.recovered_keys;
    report.public_key = key;
    report.key_quorum_ids = found.map(({ id }) => id);
    const whose =
      user === undefined ? `a member of the key quorum ${names.join(', ')}` : `a key of the user \`${user}\``;
    report.reason = `the signature is right, but its key is no member of the owner: it is ${whose}`;
  }
  return data;
}

async function usersWith({ app, em, prefix }: OperationContext, keys: readonly string[]) {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('user_keys')
    .select(['public_key', 'user_id'])
    .where('app_id', '=', app.id)
    .where('public_key', 'in', [...new Set(keys)])
    .limit(MAX_KEYS)
    .execute();
  const named = (userId: string) => userId.replace(/^did:service:/, `did:${prefix}:`);
  return new Map(rows.map(({ public_key: key, user_id: userId }) => [key, named(userId)]));
}

async function quorumsWith({ app, em }: OperationContext, keys: readonly string[]) {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('key_quorum_members as member')
    .innerJoin('key_quorums as quorum', 'quorum.id', 'member.key_quorum_id')
    .select(['member.member as key', 'quorum.id as id', 'quorum.display_name as displayName'])
    .where('quorum.app_id', '=', app.id)
    .where('member.kind', '=', 'public_key')
    .where('member.member', 'in', [...new Set(keys)])
    .orderBy('quorum.id')
    .limit(MAX_QUORUMS)
    .execute();
  return Map.groupBy(rows, ({ key }) => key);
}
