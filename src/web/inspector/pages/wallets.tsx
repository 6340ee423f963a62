import { useSignal } from '@preact/signals';
import type { KeyQuorum, Wallet, WalletActionResponse } from '../../../generated/schemas.ts';
import type { SandboxSigner } from '../../../sandbox/generated/schemas.ts';
import { readApi } from '../api.ts';
import { control } from '../control.ts';
import { CodeBlock } from '../parts/code-block.tsx';
import { Fact } from '../parts/fact.tsx';
import { SearchableList } from '../parts/searchable-list.tsx';
import { SentResult, SignerChoice, useSending } from '../parts/sent-result.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import type { Column } from '../parts/virtual-table.tsx';
import { hrefOf } from '../routes.ts';
import { dateAndTime } from '../texts.ts';
import { allPages, balanceQueries, faucetAssets, signExample } from '../wallet-facts.ts';

const columns: readonly Column<Wallet>[] = [
  {
    title: 'Name',
    name: 'operation',
    cell: (wallet) => wallet.display_name ?? wallet.external_id ?? wallet.id,
  },
  { title: 'Chain', name: 'chain', cell: ({ chain_type }) => chain_type },
  { title: 'Address', name: 'wallet', cell: ({ address }) => address },
];

/** The wallets of the sandbox's app, and the open wallet. */
export function Page() {
  const { value, error, reload } = useLoaded(
    (signal) => allPages((cursor) => readApi('listWallets', { query: { limit: 100, ...cursor } }, signal)),
    [],
  );
  return (
    <SearchableList
      page="wallets"
      title="Wallets"
      nouns={['wallet', 'wallets']}
      searchLabel="Name, id, address or chain"
      rows={value.value}
      error={error.value}
      reload={reload}
      columns={columns}
      idOf={({ id }) => id}
      textsOf={({ id, address, chain_type, display_name, external_id }) => [
        id,
        address,
        chain_type,
        display_name,
        external_id,
      ]}
      detail={(id) => <WalletDetail key={id} id={id} />}
    />
  );
}

function WalletDetail({ id }: { readonly id: string }) {
  const { value, error } = useLoaded(
    (signal) => readApi('getWallet', { path: { wallet_id: id } }, signal),
    [id],
  );
  return (
    <>
      {error.value !== '' && <p role="alert">{error.value}</p>}
      {value.value !== undefined && <WalletFacts wallet={value.value} />}
    </>
  );
}

function WalletFacts({ wallet }: { readonly wallet: Wallet }) {
  const round = useSignal(0);
  return (
    <>
      <h2>{wallet.display_name ?? wallet.external_id ?? wallet.id}</h2>
      <dl>
        <Fact name="Id">{wallet.id}</Fact>
        <Fact name="Chain">{wallet.chain_type}</Fact>
        <Fact name="Address">{wallet.address}</Fact>
        {wallet.external_id !== undefined && <Fact name="External id">{wallet.external_id}</Fact>}
        <Fact name="Created">{dateAndTime(wallet.created_at)} UTC</Fact>
        <Fact name="Policies">{wallet.policy_ids.join(', ') || 'none'}</Fact>
        <Fact name="Requests">
          <a href={hrefOf('requests', [], { wallet: wallet.id })}>of this wallet</a>
        </Fact>
      </dl>
      <Owner wallet={wallet} />
      <Balances wallet={wallet} round={round.value} />
      <Faucet
        wallet={wallet}
        onFunded={() => {
          round.value += 1;
        }}
      />
      <SignBox wallet={wallet} />
      <Actions wallet={wallet} />
    </>
  );
}

function Owner({ wallet }: { readonly wallet: Wallet }) {
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
      {error.value !== '' && <p role="alert">{error.value}</p>}
      {value.value?.map((quorum) => (
        <Quorum key={quorum.id} quorum={quorum} role={quorum.id === owner ? 'Owner' : 'Signer'} />
      ))}
    </section>
  );
}

function Quorum({ quorum, role }: { readonly quorum: KeyQuorum; readonly role: string }) {
  const keys = quorum.authorization_keys.map(({ public_key: key }) => key);
  const users = quorum.user_ids ?? [];
  const size = keys.length + users.length;
  return (
    <div>
      <p>
        {role} {quorum.display_name ?? quorum.id}: {quorum.authorization_threshold ?? size} of {size}
      </p>
      <ul>
        {keys.map((key) => (
          <li key={key}>
            <code>{key}</code>
          </li>
        ))}
        {users.map((user) => (
          <li key={user}>user {user}</li>
        ))}
      </ul>
    </div>
  );
}

function Balances({ wallet, round }: { readonly wallet: Wallet; readonly round: number }) {
  const { value, error } = useLoaded(
    async (signal) => {
      const read = balanceQueries(wallet.chain_type).map((query) =>
        readApi('getWalletBalance', { path: { wallet_id: wallet.id }, query }, signal),
      );
      return (await Promise.all(read)).flatMap(({ balances }) => balances);
    },
    [wallet.id, round],
  );
  const balances = value.value;
  return (
    <section aria-label="Balances">
      <h3>Balances</h3>
      {error.value !== '' && <p role="alert">{error.value}</p>}
      {balances?.length === 0 && <p class="empty">Balances of this chain type are not listed.</p>}
      {balances !== undefined && balances.length > 0 && (
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Chain</th>
              <th scope="col">Asset</th>
              <th scope="col">Amount</th>
            </tr>
          </thead>
          <tbody>
            {balances.map(({ chain, asset, display_values }) => (
              <tr key={`${chain} ${asset}`}>
                <td>{chain}</td>
                <td>{asset}</td>
                <td>{display_values[asset] ?? '0'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function Faucet({ wallet, onFunded }: { readonly wallet: Wallet; readonly onFunded: () => void }) {
  const assets = faucetAssets(wallet.chain_type);
  const chosen = useSignal(0);
  const amount = useSignal('1');
  const note = useSignal('');
  const place = assets[chosen.value];
  if (place === undefined) return null;
  const fund = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      const { chain, asset } = place;
      const body = { chain, asset, address: wallet.address, amount: amount.value };
      await control('fundAddress', { body });
      note.value = `${amount.value} ${asset} credited on ${chain}`;
      onFunded();
    } catch (error) {
      note.value = (error as Error).message;
    }
  };
  return (
    <section aria-label="Faucet">
      <h3>Faucet</h3>
      <form class="fields" onSubmit={fund}>
        <label>
          Asset
          <select
            onChange={({ currentTarget }) => {
              chosen.value = currentTarget.selectedIndex;
            }}
          >
            {assets.map(({ chain, asset }) => (
              <option key={`${chain} ${asset}`}>
                {asset} on {chain}
              </option>
            ))}
          </select>
        </label>
        <label>
          Amount
          <input
            inputMode="decimal"
            value={amount}
            onInput={({ currentTarget }) => {
              amount.value = currentTarget.value;
            }}
          />
        </label>
        <button type="submit">Credit</button>
      </form>
      <p role="status">{note.value}</p>
    </section>
  );
}

function SignBox({ wallet }: { readonly wallet: Wallet }) {
  const sending = useSending();
  const chosen = useSignal<readonly SandboxSigner[]>(wallet.owner_id === null ? [] : ['alice']);
  const text = useSignal(JSON.stringify(signExample(wallet.chain_type), null, 2));
  const send = (event: Event): void => {
    event.preventDefault();
    const { operation, ...example } = signExample(wallet.chain_type);
    void sending.run(async () => {
      const { operation: named = operation, body = example.body } = JSON.parse(text.value);
      return control('sendRequest', {
        body: { operation: named, path: { wallet_id: wallet.id }, body, sign_as: [...chosen.value] },
      });
    });
  };
  return (
    <section aria-label="Sign">
      <h3>Sign</h3>
      <form onSubmit={send}>
        <label class="stack">
          Operation and body
          <textarea
            rows={9}
            spellcheck={false}
            value={text}
            onInput={({ currentTarget }) => {
              text.value = currentTarget.value;
            }}
          />
        </label>
        <SignerChoice chosen={chosen} />
        <button type="submit" class="main" disabled={sending.isRunning.value}>
          Send
        </button>
      </form>
      <SentResult sending={sending} />
    </section>
  );
}

function Actions({ wallet }: { readonly wallet: Wallet }) {
  const { value, error } = useLoaded(
    (signal) =>
      readApi('listWalletActions', { path: { wallet_id: wallet.id }, query: { limit: 50 } }, signal),
    [wallet.id],
  );
  return (
    <section aria-label="Actions">
      <h3>Actions</h3>
      {error.value !== '' && <p role="alert">{error.value}</p>}
      {value.value?.data.length === 0 && <p class="empty">No transfers, swaps, deposits or payouts yet.</p>}
      {value.value?.data.map((action: WalletActionResponse) => (
        <details key={action.id}>
          <summary>
            {action.type.replaceAll('_', ' ')}: {action.status}
          </summary>
          <CodeBlock value={action} label={`Action ${action.id}`} />
        </details>
      ))}
    </section>
  );
}
