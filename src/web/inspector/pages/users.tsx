import type { User } from '../../../generated/schemas.ts';
import { readApi } from '../api.ts';
import { inWords } from '../names.ts';
import { Named } from '../parts/copy.tsx';
import { DetailPanel } from '../parts/detail-panel.tsx';
import { Fact } from '../parts/fact.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { Chain, Status } from '../parts/label.tsx';
import { SearchableList } from '../parts/searchable-list.tsx';
import { Failure } from '../parts/states.tsx';
import { Age, ExactTime } from '../parts/time.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import type { Column } from '../parts/virtual-table.tsx';
import { hrefOf } from '../routes.ts';
import { accountText, userText } from '../texts.ts';
import { allPages } from '../wallet-facts.ts';

const columns: readonly Column<User>[] = [
  { title: 'User', slot: 'lead', cell: (user) => userName(user) },
  {
    ...{ title: 'Signs in with', width: 140, slot: 'sub', isDim: true },
    cell: ({ linked_accounts: accounts }) =>
      [...new Set(accounts.map(({ type }) => inWords(type)))].join(', '),
  },
  {
    ...{ title: 'Status', width: 90, slot: 'status' },
    cell: ({ frozen_at: frozen }) => typeof frozen === 'number' && <Status of="frozen" />,
  },
  { title: 'Id', width: 150, isExtra: true, cell: ({ id }) => <Named id={id} what="the user's id" /> },
  {
    ...{ title: 'Created', width: 90, align: 'end', isDim: true, slot: 'age' },
    cell: ({ created_at: seconds }) => <Age ms={seconds * 1000} />,
  },
];

/** Returns the name of a user: the account that identifies the user best, without its type if the type is obvious. */
function userName(user: User): string {
  return userText(user).replace(/^(email|phone|custom auth) /, '');
}

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
      searchLabel="id or account"
      rows={value.value}
      error={error.value}
      reload={reload}
      columns={columns}
      idOf={({ id }) => id}
      textsOf={({ id, linked_accounts: accounts }) => [id, ...accounts.map(accountText)]}
      detail={(id, _, back) => <UserDetail key={id} id={id} back={back} />}
    />
  );
}

function UserDetail({ id, back }: { readonly id: string; readonly back: string }) {
  const { value, error, reload } = useLoaded(
    (signal) => readApi('getUser', { path: { user_id: id } }, signal),
    [id],
  );
  const user = value.value;
  return (
    <DetailPanel
      what="User"
      id={id}
      back={back}
      title={user === undefined ? 'User' : userName(user)}
      error={error.value}
      isLoading={user === undefined}
      retry={reload}
      tabs={
        user === undefined
          ? []
          : [
              { title: 'Overview', content: () => <UserFacts user={user} /> },
              { title: 'Raw', content: () => <JsonTree value={user} label="User" /> },
            ]
      }
    />
  );
}

function UserFacts({ user }: { readonly user: User }) {
  return (
    <>
      <dl>
        <Fact name="Created">
          <ExactTime ms={user.created_at * 1000} />
        </Fact>
        <Fact name="Guest">{user.is_guest ? 'yes' : 'no'}</Fact>
        <Fact name="Frozen">
          {typeof user.frozen_at === 'number' ? <ExactTime ms={user.frozen_at * 1000} /> : 'no'}
        </Fact>
        <Fact name="MFA">{user.mfa_methods.map(({ type }) => type).join(', ') || 'none'}</Fact>
      </dl>
      <h3>Linked accounts</h3>
      <ul class="tree">
        {user.linked_accounts.map((account, index) => (
          <li key={index}>{accountText(account)}</li>
        ))}
      </ul>
      <OwnedWallets userId={user.id} />
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
      <Failure message={error.value} />
      {value.value?.length === 0 && <p class="empty">The user owns no wallet.</p>}
      <ul class="tree">
        {value.value?.map(({ id, chain_type, display_name, address }) => (
          <li key={id}>
            <a href={hrefOf('wallets', [id])}>{display_name ?? address}</a> <Chain id={chain_type} />
          </li>
        ))}
      </ul>
    </section>
  );
}
