// The web page of the monitor. It shows what the HTTP API says, and changes nothing.

import { render, type ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import 'uplot/dist/uPlot.min.css';
import './page.css';
import { address, type Params, type Whoami } from './api';
import { useAnswer } from './load';
import { Head, Nothing, Problem } from './parts/answer';
import { Frame } from './parts/frame';
import { KindPage } from './pages/kind';
import { LoginPage } from './pages/login';
import { ObjectPage } from './pages/object';
import { OverviewPage } from './pages/overview';
import { RulesPage } from './pages/rules';
import { TimelinePage } from './pages/timeline';
import { useRoute } from './route';
import { onUnknown } from './session';

const pages: Record<string, ComponentType<{ params: Params }>> = {
  overview: OverviewPage,
  timeline: TimelinePage,
  object: ObjectPage,
  kind: KindPage,
  rules: RulesPage,
};

function Page() {
  const route = useRoute();
  const [unknown, setUnknown] = useState(false);
  useEffect(() => onUnknown(() => setUnknown(true)), []);
  const who = useAnswer<Whoami>(address('whoami'), false);
  const entered = () => {
    setUnknown(false);
    who.reload();
  };
  const Shown = pages[route.page] ?? Unknown;
  const user = who.answer?.user;
  return (
    <Frame page={route.page} user={unknown ? undefined : user}>
      {unknown ? (
        <LoginPage onEnter={entered} />
      ) : user ? (
        <Shown params={route.params} />
      ) : (
        who.failure && <Problem failure={who.failure} reload={who.reload} />
      )}
    </Frame>
  );
}

function Unknown() {
  return (
    <>
      <Head title="There is no such page" />
      <Nothing>The address of this page is not one of the monitor's.</Nothing>
    </>
  );
}

const place = document.getElementById('page');
if (place) render(<Page />, place);
