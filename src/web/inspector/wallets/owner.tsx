import type { KeyQuorum, Wallet } from '../../../generated/schemas.ts';
import type { SandboxMember } from '../../../sandbox/generated/schemas.ts';
import { readApi } from '../api.ts';
import { Named } from '../parts/copy.tsx';
import { Seats } from '../parts/label.tsx';
import { Failure } from '../parts/states.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { hrefOf } from '../routes.ts';

interface OwnerProps {
  readonly wallet: Wallet;
  /** The members of the owner with their names. */
  readonly members: readonly SandboxMember[];
}

/** The owner and the additional signers of a wallet. */
export function Owner({ wallet, members }: OwnerProps) {
  const { owner_id: owner, additional_signers: signers } = wallet;
  const ids = [...(owner === null ? [] : [owner]), ...signers.map(({ signer_id }) => signer_id)];
  const { value, error } = useLoaded(
    (signal) =>
      Promise.all(ids.map((id) => readApi('getKeyQuorum', { path: { key_quorum_id: id } }, signal))),
    [wallet.id],
  );
  return (
    <section aria-label="Owner and signers">
      <h3>Owner and signers</h3>
      {owner === null && <p>No owner: the app secret is enough to sign.</p>}
      <Failure message={error.value} />
      {value.value?.map((quorum) => (
        <Quorum
          key={quorum.id}
          quorum={quorum}
          role={quorum.id === owner ? 'Owner' : 'Signer'}
          nameOf={(id) => members.find((member) => member.id === id)?.name ?? undefined}
        />
      ))}
    </section>
  );
}

interface QuorumProps {
  readonly quorum: KeyQuorum;
  readonly role: string;
  /** The name of a member, if it has one. */
  readonly nameOf: (id: string) => string | undefined;
}

function Quorum({ quorum, role, nameOf }: QuorumProps) {
  const keys = quorum.authorization_keys.map(({ public_key: key }) => key);
  const users = quorum.user_ids ?? [];
  const size = keys.length + users.length;
  return (
    <div>
      <p>
        {role} <strong>{quorum.display_name ?? <Named id={quorum.id} what="the key quorum's id" />}</strong>{' '}
        <Seats size={size} threshold={quorum.authorization_threshold ?? size} />
      </p>
      <ul class="tree">
        {keys.map((key) => (
          <li key={key}>
            key{' '}
            <Named id={key} what="the public key">
              {nameOf(key)}
            </Named>
          </li>
        ))}
        {users.map((user) => (
          <li key={user}>
            user{' '}
            <Named id={user} what="the user's id" href={hrefOf('users', [user])}>
              {nameOf(user)}
            </Named>
          </li>
        ))}
      </ul>
    </div>
  );
}
