import { KeyRound } from 'lucide';
import type { SandboxKeyQuorum } from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { shortened } from '../names.ts';
import { Named } from '../parts/copy.tsx';
import { DetailPanel } from '../parts/detail-panel.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { Label, Seats } from '../parts/label.tsx';
import { SearchableList } from '../parts/searchable-list.tsx';
import { Empty } from '../parts/states.tsx';
import { everyPage, useLoaded } from '../parts/use-loaded.tsx';
import type { Column } from '../parts/virtual-table.tsx';
import { hrefOf } from '../routes.ts';

const columns: readonly Column<SandboxKeyQuorum>[] = [
  { title: 'Name', slot: 'lead', cell: (quorum) => nameOf(quorum) },
  {
    ...{ title: 'Must sign', width: 120, slot: 'status' },
    cell: ({ size, threshold }) => <Seats size={size} threshold={threshold} />,
  },
  { title: 'Members', width: 220, slot: 'sub', isDim: true, cell: membersText },
  { title: 'Wallets', width: 72, align: 'end', isExtra: true, cell: ({ wallet_count: count }) => count },
];

function membersText({ members }: SandboxKeyQuorum): string {
  return members.map(({ id, name }) => name ?? shortened(id)).join(', ');
}

/** The display name of a quorum, or its members. */
function nameOf(quorum: SandboxKeyQuorum): string {
  return quorum.display_name ?? membersText(quorum);
}

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
      searchLabel="Name, member, wallet or id"
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
      empty={
        <Empty icon={KeyRound} title="No key quorums yet">
          <span>A key quorum owns wallets: some of its members must sign.</span>
          <a class="button" href={hrefOf('api', ['createKeyQuorum'], { text: 'createKeyQuorum' })}>
            Create one
          </a>
        </Empty>
      }
      detail={(id, quorum, back) => <QuorumDetail key={id} id={id} quorum={quorum} back={back} />}
    />
  );
}

interface DetailProps {
  readonly id: string;
  readonly quorum: SandboxKeyQuorum | undefined;
  readonly back: string;
}

function QuorumDetail({ id, quorum, back }: DetailProps) {
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
        { title: 'Raw', content: () => <JsonTree value={quorum} label="Key quorum" /> },
      ]}
    />
  );
}

function Overview({ quorum: { members, wallets, wallet_count: count, id } }: { quorum: SandboxKeyQuorum }) {
  const input = { text: 'updateKeyQuorum', key_quorum_id: id };
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
      <div class="actions">
        <a class="button" href={hrefOf('api', ['updateKeyQuorum'], input)}>
          Change
        </a>
        <a class="button" href={hrefOf('api', ['deleteKeyQuorum'], { ...input, text: 'deleteKeyQuorum' })}>
          Delete
        </a>
      </div>
    </>
  );
}
