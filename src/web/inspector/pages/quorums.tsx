import { signal, useSignal } from '@preact/signals';
import { KeyRound, Plus } from 'lucide';
import type { SandboxKeyQuorum } from '../../../sandbox/generated/schemas.ts';
import { readApi } from '../api.ts';
import { control } from '../control.ts';
import { shortened } from '../names.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { Named } from '../parts/copy.tsx';
import { DetailPanel } from '../parts/detail-panel.tsx';
import { Icon } from '../parts/icon.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { Label, Seats } from '../parts/label.tsx';
import { SearchableList } from '../parts/searchable-list.tsx';
import { isRefusal, SentResult, SignerChoice, useSending } from '../parts/sent-result.tsx';
import { Empty, Failure } from '../parts/states.tsx';
import { everyPage, useLoaded } from '../parts/use-loaded.tsx';
import type { Column } from '../parts/virtual-table.tsx';
import {
  bodyOf,
  choicesOf,
  draftOf,
  emptyDraft,
  type Member,
  membersText,
  type People,
  type QuorumDraft,
} from '../quorum-draft.ts';
import { goTo } from '../router.tsx';
import { hrefOf } from '../routes.ts';
import { allPages, ownerSigners } from '../wallet-facts.ts';

/** The address of the form of a new key quorum. */
const NEW = 'new';

const columns: readonly Column<SandboxKeyQuorum>[] = [
  { title: 'Name', slot: 'lead', cell: (quorum) => nameOf(quorum) },
  {
    ...{ title: 'Must sign', width: 120, slot: 'status' },
    cell: ({ size, threshold }) => <Seats size={size} threshold={threshold} />,
  },
  { title: 'Members', width: 220, slot: 'sub', isDim: true, cell: membersText },
  { title: 'Wallets', width: 72, align: 'end', isExtra: true, cell: ({ wallet_count: count }) => count },
];

/** Returns the display name of a quorum, or the names of its members. */
function nameOf(quorum: SandboxKeyQuorum): string {
  return quorum.display_name ?? membersText(quorum);
}

/** The deleted key quorum that the page offers to create again. */
const deleted = signal<SandboxKeyQuorum | undefined>(undefined);

/** The key quorums of all apps, with their members and with the wallets that they own. */
export function Page() {
  const { value, error, reload } = useLoaded(
    (signal) => everyPage((query) => control('listSandboxKeyQuorums', { query }, signal)),
    [],
  );
  return (
    <SearchableList
      page="quorums"
      title="Key quorums"
      nouns={['key quorum', 'key quorums']}
      searchLabel="name, member, wallet or id"
      rows={value.value}
      error={error.value}
      reload={reload}
      columns={columns}
      idOf={({ id }) => id}
      textsOf={({ id, display_name: name, members, wallets }) => [
        id,
        name,
        ...members.flatMap((member) => [member.id, member.name]),
        ...wallets.map((wallet) => wallet.name),
      ]}
      actions={
        <a class="button main" href={hrefOf('quorums', [NEW])}>
          <Icon of={Plus} /> New
        </a>
      }
      above={<Undo onRestored={reload} />}
      empty={
        <Empty icon={KeyRound} title="No key quorums yet">
          <span>A key quorum owns wallets: some of its members must sign.</span>
          <a class="button" href={hrefOf('quorums', [NEW])}>
            Create one
          </a>
        </Empty>
      }
      detail={(id, quorum, back) =>
        id === NEW ? (
          <DetailPanel
            what="Key quorum"
            id="new"
            back={back}
            title="New key quorum"
            sub="Choose its members, and how many of them must sign."
            tabs={[{ title: 'Members', content: () => <QuorumForm stored={undefined} onSaved={reload} /> }]}
          />
        ) : (
          <QuorumDetail key={id} id={id} quorum={quorum} back={back} onSaved={reload} />
        )
      }
    />
  );
}

/** Offers to create a deleted key quorum again. */
function Undo({ onRestored }: { readonly onRestored: () => void }) {
  const sending = useSending();
  const quorum = deleted.value;
  if (quorum === undefined) return null;
  const restore = async (): Promise<void> => {
    const body = bodyOf(draftOf(quorum));
    await sending.run(() =>
      control('sendRequest', { body: { operation: 'createKeyQuorum', path: {}, body } }),
    );
    if (isRefusal(sending.result.value?.status ?? 0)) return;
    deleted.value = undefined;
    onRestored();
  };
  return (
    <div class="note" role="status">
      Deleted {nameOf(quorum)}.{' '}
      <button type="button" disabled={sending.isRunning.value} onClick={restore}>
        Undo
      </button>{' '}
      <span class="quiet">It then gets a new id.</span>
      <Failure message={sending.error.value} />
    </div>
  );
}

interface DetailProps {
  readonly id: string;
  readonly quorum: SandboxKeyQuorum | undefined;
  readonly back: string;
  readonly onSaved: () => void;
}

function QuorumDetail({ id, quorum, back, onSaved }: DetailProps) {
  if (quorum === undefined) {
    return <DetailPanel what="Key quorum" id={id} back={back} title="Key quorum" isLoading />;
  }
  return (
    <DetailPanel
      what="Key quorum"
      id={id}
      back={back}
      title={
        <>
          {nameOf(quorum)} <Seats size={quorum.size} threshold={quorum.threshold} />
        </>
      }
      tabs={[
        { title: 'Overview', content: () => <Overview quorum={quorum} /> },
        { title: 'Change', content: () => <QuorumForm key={id} stored={quorum} onSaved={onSaved} /> },
        { title: 'Raw', content: () => <JsonTree value={quorum} label="Key quorum" /> },
      ]}
    />
  );
}

function Overview({ quorum: { members, wallets, wallet_count: count } }: { quorum: SandboxKeyQuorum }) {
  return (
    <>
      <h3>Members</h3>
      <ul class="lines">
        {members.map(({ type, id: member, name }) => (
          <li key={member}>
            <Named
              id={member}
              what="the member"
              href={type === 'user' ? hrefOf('users', [member]) : undefined}
            >
              {name ?? undefined}
            </Named>{' '}
            <Label>{type.replaceAll('_', ' ')}</Label>
          </li>
        ))}
      </ul>
      <h3>Wallets</h3>
      {count === 0 && <p class="empty">It owns no wallet.</p>}
      <ul class="lines">
        {wallets.map(({ id: wallet, name }) => (
          <li key={wallet}>
            <a href={hrefOf('wallets', [wallet])}>{name ?? shortened(wallet)}</a>
          </li>
        ))}
      </ul>
      {count > wallets.length && <p class="quiet">and {count - wallets.length} more</p>}
    </>
  );
}

/** Reads everyone who can be a member. */
async function readPeople(signal: AbortSignal): Promise<People> {
  const { signers } = await control('getConnection', {}, signal);
  const users = await allPages((cursor) =>
    readApi('listUsers', { query: { limit: 100, ...cursor } }, signal),
  );
  const quorums = await everyPage((query) => control('listSandboxKeyQuorums', { query }, signal));
  return { keys: signers, users, quorums };
}

interface FormProps {
  /** The stored key quorum. Undefined for a new one. */
  readonly stored: SandboxKeyQuorum | undefined;
  readonly onSaved: () => void;
}

/** The form of a key quorum: its name, how many must sign, and its members by name. */
function QuorumForm({ stored, onSaved }: FormProps) {
  const draft = useSignal<QuorumDraft>(stored === undefined ? emptyDraft : draftOf(stored));
  const signers = useSignal(ownerSigners(stored));
  const people = useLoaded(readPeople, []);
  const sending = useSending();
  const { name, threshold, members } = draft.value;
  const change = (part: Partial<QuorumDraft>): void => {
    draft.value = { ...draft.value, ...part };
  };
  const send = async (operation: string, body?: object): Promise<string | undefined> => {
    const path = stored === undefined ? {} : { key_quorum_id: stored.id };
    await sending.run(() =>
      control('sendRequest', {
        body: { operation, path, sign_as: [...signers.value], ...(body === undefined ? {} : { body }) },
      }),
    );
    const result = sending.result.value;
    if (result === undefined || isRefusal(result.status)) return undefined;
    onSaved();
    return (result.body as { id?: string }).id ?? '';
  };
  const save = async (submitted: Event): Promise<void> => {
    submitted.preventDefault();
    const id = await send(
      stored === undefined ? 'createKeyQuorum' : 'updateKeyQuorum',
      bodyOf(draft.value, { isUpdate: stored !== undefined }),
    );
    if (stored === undefined && id !== undefined) goTo(hrefOf('quorums', [id]));
  };
  const remove = async (): Promise<void> => {
    if ((await send('deleteKeyQuorum')) === undefined) return;
    deleted.value = stored;
    goTo(hrefOf('quorums'));
  };
  return (
    <form onSubmit={save}>
      <div class="fields">
        <label class="wide">
          Name
          <input
            maxLength={50}
            value={name}
            onInput={({ currentTarget }) => change({ name: currentTarget.value })}
          />
        </label>
        <label>
          Members who must sign
          <input
            type="number"
            min={1}
            max={Math.max(1, members.length)}
            required
            value={threshold}
            onInput={({ currentTarget }) => change({ threshold: Number(currentTarget.value) })}
          />
        </label>
      </div>
      {members.length > 0 && <Seats size={members.length} threshold={Math.min(threshold, members.length)} />}
      <Failure message={people.error.value} retry={people.reload} />
      {people.value.value !== undefined && (
        <MemberChoice people={people.value.value} stored={stored} members={members} change={change} />
      )}
      {stored !== undefined && <SignerChoice chosen={signers} />}
      <p class="actions">
        <button type="submit" class="main" disabled={members.length === 0 || sending.isRunning.value}>
          {stored === undefined ? 'Create the key quorum' : 'Save'}
        </button>
        {stored !== undefined && (
          <ConfirmButton question={`Delete ${nameOf(stored)}?`} onConfirm={() => void remove()}>
            Delete
          </ConfirmButton>
        )}
      </p>
      <SentResult sending={sending} />
    </form>
  );
}

interface MemberChoiceProps {
  readonly people: People;
  readonly stored: SandboxKeyQuorum | undefined;
  readonly members: readonly Member[];
  readonly change: (part: Partial<QuorumDraft>) => void;
}

/** Check boxes of everyone who can be a member, and a field for further public keys. */
function MemberChoice({ people, stored, members, change }: MemberChoiceProps) {
  const choices = choicesOf(people, stored, members);
  const key = useSignal('');
  const toggle = (member: Member): void => {
    const others = members.filter(({ id }) => id !== member.id);
    change({ members: others.length < members.length ? others : [...members, member] });
  };
  const add = (): void => {
    const id = key.value.trim();
    if (id !== '' && !members.some((member) => member.id === id)) {
      change({ members: [...members, { type: 'public_key', id }] });
    }
    key.value = '';
  };
  return (
    <>
      {choices.map(({ title, own }) => (
        <fieldset key={title}>
          <legend>{title}</legend>
          {own.map(({ member, text }) => (
            <label key={member.id} title={member.id}>
              <input
                type="checkbox"
                checked={members.some(({ id }) => id === member.id)}
                onChange={() => toggle(member)}
              />{' '}
              {text}
            </label>
          ))}
        </fieldset>
      ))}
      <div class="fields">
        <label class="wide">
          Another P-256 public key, base64
          <input
            spellcheck={false}
            value={key}
            onInput={({ currentTarget }) => (key.value = currentTarget.value)}
          />
        </label>
        <button type="button" disabled={key.value.trim() === ''} onClick={add}>
          Add the key
        </button>
      </div>
    </>
  );
}
