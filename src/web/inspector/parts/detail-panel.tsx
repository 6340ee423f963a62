import { X } from 'lucide';
import type { ComponentChildren } from 'preact';
import { Copy } from './copy.tsx';
import { Icon } from './icon.tsx';
import { Failure, Skeleton } from './states.tsx';
import { type Tab, TabContent, TabRow } from './tabs.tsx';

interface DetailPanelProps {
  /** The kind of thing that is open, such as `Request`. */
  readonly what: string;
  readonly id: string;
  /** The address of the list. */
  readonly back: string;
  readonly title: ComponentChildren;
  readonly sub?: ComponentChildren;
  readonly error?: string;
  readonly isLoading?: boolean;
  readonly retry?: () => void;
  /** The tabs of the open row. Empty while the row is loaded. */
  readonly tabs?: readonly Tab[];
  /** The content of a panel without tabs. */
  readonly children?: ComponentChildren;
}

/** The open row, beside its list: title, copyable id, and tabs. Escape closes it. */
export function DetailPanel(props: DetailPanelProps) {
  const { what, id, back, title, sub, error = '', retry } = props;
  const tabs = props.tabs?.length === 0 ? undefined : props.tabs;
  return (
    <section class="detail" aria-label={what}>
      <header class="panel-head">
        <div>
          <h2>{title}</h2>
          <Copy text={id} what={`the id of this ${what.toLowerCase()}`} />
          <a class="back button plain" href={back} aria-label="Close" title="Close (Escape)">
            <Icon of={X} />
          </a>
        </div>
        <div class="sub">{sub ?? <code>{id}</code>}</div>
        {tabs !== undefined && <TabRow tabs={tabs} label={`Parts of this ${what.toLowerCase()}`} />}
      </header>
      {(error !== '' || props.isLoading === true) && (
        <div class="panel-body">
          <Failure message={error} {...(retry === undefined ? {} : { retry })} />
          {error === '' && <Skeleton />}
        </div>
      )}
      {tabs === undefined ? <div class="panel-body">{props.children}</div> : <TabContent tabs={tabs} />}
    </section>
  );
}
