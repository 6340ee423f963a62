import {
  Activity,
  ArrowLeftRight,
  Bug,
  Camera,
  ChartNoAxesColumn,
  CirclePlay,
  Clock,
  FileCode2,
  Grid3x3,
  House,
  type IconNode,
  KeyRound,
  Layers,
  Link,
  ListChecks,
  ListFilter,
  PenLine,
  Radio,
  ScrollText,
  Sigma,
  SlidersHorizontal,
  Users,
  Wallet,
  Webhook,
} from 'lucide';
import type { ComponentType } from 'preact';

/** A page of the inspector. Its code is loaded when the page is first opened. */
export interface PageEntry {
  /** The first segment of the page's address. */
  readonly id: string;
  /** The title in the navigation and in the browser window. */
  readonly title: string;
  readonly icon: IconNode;
  readonly load: () => Promise<{ readonly Page: ComponentType }>;
}

/** The pages in the order of the navigation, by group. */
export const groups: readonly { readonly title: string; readonly pages: readonly PageEntry[] }[] = [
  {
    title: 'Observe',
    pages: [
      { id: 'home', title: 'Home', icon: House, load: () => import('./pages/home.tsx') },
      { id: 'requests', title: 'Requests', icon: Activity, load: () => import('./pages/requests.tsx') },
      { id: 'events', title: 'Events', icon: Radio, load: () => import('./pages/events.tsx') },
      { id: 'webhooks', title: 'Webhooks', icon: Webhook, load: () => import('./pages/webhooks.tsx') },
    ],
  },
  {
    title: 'Assets',
    pages: [
      { id: 'wallets', title: 'Wallets', icon: Wallet, load: () => import('./pages/wallets.tsx') },
      {
        ...{ id: 'transactions', title: 'Transactions', icon: ArrowLeftRight },
        load: () => import('./pages/transactions.tsx'),
      },
      { id: 'actions', title: 'Actions', icon: ListChecks, load: () => import('./pages/actions.tsx') },
      { id: 'money', title: 'Money', icon: ChartNoAxesColumn, load: () => import('./pages/money.tsx') },
    ],
  },
  {
    title: 'Access',
    pages: [
      { id: 'users', title: 'Users', icon: Users, load: () => import('./pages/users.tsx') },
      { id: 'policies', title: 'Policies', icon: ScrollText, load: () => import('./pages/policies.tsx') },
      { id: 'sets', title: 'Condition sets', icon: ListFilter, load: () => import('./pages/sets.tsx') },
      {
        ...{ id: 'aggregations', title: 'Aggregations', icon: Sigma },
        load: () => import('./pages/aggregations.tsx'),
      },
      { id: 'intents', title: 'Intents', icon: PenLine, load: () => import('./pages/intents.tsx') },
      { id: 'quorums', title: 'Key quorums', icon: KeyRound, load: () => import('./pages/quorums.tsx') },
      { id: 'apps', title: 'Apps', icon: SlidersHorizontal, load: () => import('./pages/apps.tsx') },
    ],
  },
  {
    title: 'Control',
    pages: [
      { id: 'clock', title: 'Clock', icon: Clock, load: () => import('./pages/clock.tsx') },
      { id: 'faults', title: 'Faults', icon: Bug, load: () => import('./pages/faults.tsx') },
      { id: 'snapshots', title: 'Snapshots', icon: Camera, load: () => import('./pages/snapshots.tsx') },
      { id: 'scenarios', title: 'Scenarios', icon: CirclePlay, load: () => import('./pages/scenarios.tsx') },
      { id: 'chains', title: 'Chains', icon: Link, load: () => import('./pages/chains.tsx') },
    ],
  },
  {
    title: 'Contract',
    pages: [
      { id: 'api', title: 'API', icon: FileCode2, load: () => import('./pages/api.tsx') },
      { id: 'coverage', title: 'Coverage', icon: Grid3x3, load: () => import('./pages/coverage.tsx') },
    ],
  },
];

/** A page that shows every UI component in every state. No menu links to it. */
const components: PageEntry = {
  ...{ id: 'components', title: 'Components', icon: Layers },
  load: () => import('./pages/components.tsx'),
};

export const pages: readonly PageEntry[] = [...groups.flatMap((group) => group.pages), components];
