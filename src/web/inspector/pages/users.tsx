import type { User } from '../../../generated/schemas.ts';
import { readApi } from '../api.ts';
import { CodeBlock } from '../parts/code-block.tsx';
import { Fact } from '../parts/fact.tsx';
import { SearchableList } from '../parts/searchable-list.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import type { Column } from '../parts/virtual-table.tsx';
import { hrefOf } from '../routes.ts';
import { accountText, dateAndTime, userText } from '../texts.ts';
import { allPages } from '../wallet-facts.ts';

const columns: readonly Column<User>[] = [
  { title: 'Account', name: 'operation', cell: userText },
  { title: 'Accounts', name: 'chain', cell: ({ linked_accounts: accounts }) => accounts.length },
  { title: 'Id', name: 'wallet', cell: ({ id }) => id },
];

/** The users of the sandbox's app, and the open user. */
export function Page() {
  const { value, error, reload } = useLoaded(
    (signal) => allPages((cursor) => readApi('listUsers', { query: { limit: 100, ...cursor } }, signal)),
    [],
  );
  return (
    <SearchableList
      page="users"
      title="Users"
      nouns={['user', 'users']}
      searchLabel="Id or account"
      rows={value.value}
      error={error.value}
      reload={reload}
      columns={columns}
      idOf={({ id }) => id}
      textsOf={({ id, linked_accounts: accounts }) => [id, ...accounts.map(accountText)]}
      detail={(id) => <UserDetail key={id} id={id} />}
    />
  );
}

function UserDetail({ id }: { readonly id: string }) {
  const { value, error } = useLoaded((signal) => readApi('getUser', { path: { user_id: id } }, signal), [id]);
  const user = value.value;
  return (
    <>
      {error.value !== '' && <p role="alert">{error.value}</p>}
      {user !== undefined && (
        <>
          <h2>{userText(user)}</h2>
          <dl>
            <Fact name="Id">{user.id}</Fact>
            <Fact name="Created">{dateAndTime(user.created_at * 1000)} UTC</Fact>
            <Fact name="Guest">{user.is_guest ? 'yes' : 'no'}</Fact>
            <Fact name="Frozen">
              {typeof user.frozen_at === 'number' ? `since ${dateAndTime(user.frozen_at * 1000)} UTC` : 'no'}
            </Fact>
            <Fact name="MFA">{user.mfa_methods.map(({ type }) => type).join(', ') || 'none'}</Fact>
          </dl>
          <h3>Linked accounts</h3>
          <ul>
            {user.linked_accounts.map((account, index) => (
              <li key={index}>{accountText(account)}</li>
            ))}
          </ul>
          <OwnedWallets userId={user.id} />
          <details>
            <summary>As the API returns it</summary>
            <CodeBlock value={user} label="User" />
          </details>
        </>
      )}
    </>
  );
}

function OwnedWallets({ userId }: { readonly userId: string }) {
  const { value, error } = useLoaded(
    (signal) =>
      allPages((cursor) =>
        readApi('listWallets', { query: { user_id: userId, limit: 100, ...cursor } }, signal),
      ),
    [userId],
  );
  return (
    <section aria-label="Wallets">
      <h3>Wallets</h3>
      {error.value !== '' && <p role="alert">{error.value}</p>}
      {value.value?.length === 0 && <p class="empty">The user owns no wallet.</p>}
      <ul>
        {value.value?.map(({ id, chain_type, display_name, address }) => (
          <li key={id}>
            <a href={hrefOf('wallets', [id])}>{display_name ?? address}</a> on {chain_type}
          </li>
        ))}
      </ul>
    </section>
  );
}
