import type { SandboxApp } from '../../../sandbox/generated/schemas.ts';
import { readApi } from '../api.ts';
import { control } from '../control.ts';
import { Named } from '../parts/copy.tsx';
import { DetailPanel } from '../parts/detail-panel.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { SearchableList } from '../parts/searchable-list.tsx';
import { Age } from '../parts/time.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import type { Column } from '../parts/virtual-table.tsx';

const columns: readonly Column<SandboxApp>[] = [
  { title: 'Name', slot: 'lead', cell: ({ name }) => name },
  { title: 'Id', width: 180, slot: 'sub', cell: ({ id }) => <Named id={id} what="the app's id" /> },
  {
    ...{ title: 'Created', width: 90, align: 'end', isDim: true, slot: 'age' },
    cell: ({ created_at_ms: ms }) => <Age ms={ms} />,
  },
];

/** The apps of the sandbox, and the open app. */
export function Page() {
  const { value, error, reload } = useLoaded((signal) => control('listApps', {}, signal), []);
  return (
    <SearchableList
      page="apps"
      title="Apps"
      nouns={['app', 'apps']}
      searchLabel="Id or name"
      rows={value.value?.data}
      error={error.value}
      reload={reload}
      columns={columns}
      idOf={({ id }) => id}
      textsOf={({ id, name }) => [id, name]}
      detail={(id, app, back) => <AppDetail key={id} id={id} app={app} back={back} />}
    />
  );
}

interface DetailProps {
  readonly id: string;
  readonly app: SandboxApp | undefined;
  readonly back: string;
}

function AppDetail({ id, app, back }: DetailProps) {
  const { value, error } = useLoaded((signal) => readApi('getApp', { path: { app_id: id } }, signal), [id]);
  if (app === undefined) return <DetailPanel what="App" id={id} back={back} title="App" isLoading />;
  return (
    <DetailPanel
      what="App"
      id={id}
      back={back}
      title={app.name}
      tabs={[
        { title: 'Settings', content: () => <JsonTree value={app.settings} label="Settings" /> },
        {
          title: 'What clients see',
          content: () =>
            value.value === undefined ? (
              <p class="empty">The credentials of the sandbox's app do not read it. {error.value}</p>
            ) : (
              <JsonTree value={value.value} label="What clients see" />
            ),
        },
        { title: 'Raw', content: () => <JsonTree value={app} label="App" /> },
      ]}
    />
  );
}
