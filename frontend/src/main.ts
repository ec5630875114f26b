import { mount } from "svelte";
import App from "./App.svelte";
import "./app.css";
import { takeToken } from "./lib/load.svelte";
import { goTo, linkTo, place, startRouter } from "./lib/router.svelte";
import { theme } from "./lib/theme.svelte";

takeToken();
theme.read();
startRouter();
// An export of an experiment alone opens on its page.
const alone = window.DEEMSTER_EXPORT?.experiment;
if (alone && place.path.length === 0) goTo(linkTo(["experiments", alone]), { replace: true });
mount(App, { target: document.getElementById("app") as HTMLElement });
