package eval
import ("testing";"os")
func TestPreview(t *testing.T){ r:=fakeReport(); f,_:=os.Create("/tmp/preview.html"); if err:=r.HTML(f);err!=nil{t.Fatal(err)}; f.Close()}
